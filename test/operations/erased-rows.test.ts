import { expect, test } from "bun:test"
import { eq, inArray } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { events } from "../../src/events/tables"
import { keep } from "../../src/mailbox/mailbox"
import { mailboxMails } from "../../src/mailbox/tables"
import { messageContents, messages } from "../../src/messages/tables"
import { addSubscriber } from "../harness/audience"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { addReceived, addText, OURS } from "../sms/texts"

const service = await sharedService()
const { store } = service

const ANN = "+4366012345678"
const OTHER = "+4366087654321"

const path = (id: string, verb: string) => `/v1/subscribers/${id}${verb}`

const textAddress = (number: string) => `${number.slice(1)}@sms.mailbox.test`

/** As the embedded mailbox shows a text. */
function caught({ account_id, project_id }: TestProject, email_id: string, number: string) {
  const raw = Buffer.from("Subject: x\r\n\r\nDing")
  const to = textAddress(number)
  const address = { mail_from: textAddress(OURS), recipients: [to], to_address: to }
  const shown = { from_address: textAddress(OURS), subject: "Ding", raw, size: raw.length }
  const mail = { id: newId(), account_id, project_id, email_id, created_at: now() }
  return store.tx((tx) => keep(tx, { ...mail, ...address, ...shown }, [number]))
}

/** A text that names the subscriber, one that has the number alone, and one that came from it. */
async function textsOf(project: TestProject, number: string, subscriber_id?: string) {
  const ids = [
    await addText(store, project, { to: number, ...(subscriber_id && { subscriber_id }) }),
    await addText(store, project, { to: number }),
    await addReceived(store, project, { to: number, body: "STOP" }),
  ]
  await caught(project, ids[0] ?? "", number)
  return ids
}

const left = async (project: TestProject) => {
  const ours = eq(messages.project_id, project.project_id)
  const rows = await store.read.select({ id: messages.id }).from(messages).where(ours)
  return rows.map(({ id }) => id).sort()
}

test("texts of a person, to and from its number, are exported and erased with their copies and events", async () => {
  const project = await service.project()
  const ann = await addSubscriber(project, { phone: ANN })
  const theirs = await textsOf(project, ANN, ann.id)
  const others = await textsOf(project, OTHER)

  const { data } = (await project.get(path(ann.id, "/export"))).body
  expect(data.messages.map((one: { id: string }) => one.id).sort()).toEqual(theirs.toSorted())
  expect(data.messages).toContainEqual(
    expect.objectContaining({ channel: "sms", to: ANN, from: OURS, body: "Ding", attempts: [] }),
  )
  expect(data.messages).toContainEqual(
    expect.objectContaining({ direction: "inbound", to: OURS, from: ANN, body: "STOP" }),
  )

  const { body } = await project.post(path(ann.id, "/erase"), { confirm: ann.external_id })
  expect(body.data.counts).toMatchObject({ messages: 3, captures: 1 })
  expect(await left(project)).toEqual(others.toSorted())
  const rows = await store.read
    .select()
    .from(messageContents)
    .where(inArray(messageContents.message_id, theirs))
  expect(rows).toEqual([])
  const told = await store.read.select().from(events).where(inArray(events.subject_id, theirs))
  expect(told).toEqual([])
  expect((await project.get("/v1/events?limit=100")).text).not.toContain(ANN)
  const mails = store.read.select().from(mailboxMails)
  const kept = await mails.where(eq(mailboxMails.project_id, project.project_id))
  expect(kept.map(({ to_address }) => to_address)).toEqual([textAddress(OTHER)])
})

test("texts of a merged subscriber move, and its number still leads to the others", async () => {
  const project = await service.project()
  const [kept, gone] = [await addSubscriber(project), await addSubscriber(project, { phone: ANN })]
  const ids = await textsOf(project, ANN, gone.id)
  await project.post(path(kept.id, "/merge"), { from_id: gone.id })
  const [moved] = await store.read
    .select()
    .from(messages)
    .where(eq(messages.id, ids[0] ?? ""))
  expect(moved?.subscriber_id).toBe(kept.id)
  const { data } = (await project.get(path(kept.id, "/export"))).body
  expect(data.messages).toHaveLength(3)
  await project.post(path(kept.id, "/erase"), { confirm: kept.external_id })
  expect(await left(project)).toEqual([])
})

test("a number that two subscribers share names neither of them", async () => {
  const project = await service.project()
  const [ann, bob] = [
    await addSubscriber(project, { phone: ANN }),
    await addSubscriber(project, { phone: ANN }),
  ]
  const [named = "", ...shared] = await textsOf(project, ANN, ann.id)
  const { data } = (await project.get(path(bob.id, "/export"))).body
  expect(data.messages).toEqual([])
  await project.post(path(ann.id, "/erase"), { confirm: ann.external_id })
  expect(await left(project)).toEqual(shared.toSorted())
  expect(shared).not.toContain(named)
})
