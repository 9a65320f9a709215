import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { recordConsent } from "../../src/consents/consents"
import { messages } from "../../src/messages/tables"
import { addSubscriber } from "../harness/audience"
import { refusal } from "../harness/client"
import { deliverAll } from "../harness/delivery"
import { addInbound } from "../harness/inbound-rows"
import { mail, NOBODY } from "../harness/mail"
import { sharedService } from "../harness/shared-service"
import { linkTo } from "../harness/unsubscribed"

const service = await sharedService()
const { store, parts } = service

const path = (id: string, verb = "/export") => `/v1/subscribers/${encodeURIComponent(id)}${verb}`

test("an export is one document of everything that is held", async () => {
  const project = await service.project()
  const email = "ann@mailbox.test"
  const { id, external_id } = await addSubscriber(project, { email, name: "Ann" })
  await project.post("/v1/topics", { name: "News", key: "news" })
  await project.post("/v1/topics/news/subscribers", { subscriber_ids: [id] })
  await project.post(path(id, "/unsubscribe"), { channel: "sms" })
  await project.post("/v1/suppressions", { email: "other@mailbox.test" })
  await linkTo(service, project, "news", { address: email })
  const given = {
    ...{ from: "me@mailbox.test", to: email, subject: "Hi", html: "<p>Hello</p>", text: "Hello" },
    attachments: [{ filename: "a.txt", content: Buffer.from("file").toString("base64") }],
  }
  const sent = await project.post("/v1/emails", given)
  const unnamed = await project.post("/v1/emails", { ...given, subject: "Again" })
  await project.post("/v1/emails", { ...given, to: "other@mailbox.test" })
  await store.tx((tx) =>
    tx.update(messages).set({ subscriber_id: id }).where(eq(messages.id, sent.body.id)),
  )
  await deliverAll(service)
  const received = await addInbound(store, project, { from_email: email })
  await project.post("/v1/suppressions", { email })

  const answer = await project.get(path(external_id))
  expect(answer.status).toBe(200)
  expect(answer.headers.get("content-type")).toBe("application/json")
  const { data, meta } = answer.body
  expect(meta).toEqual({ request_id: answer.headers.get("x-request-id") })
  expect(data.subscriber).toEqual((await project.get(path(id, ""))).body.data)
  expect(data.unsubscribes).toEqual((await project.get(path(id, "/unsubscribes"))).body.data)
  expect(data.consents).toEqual((await project.get(path(id, "/consents"))).body.data)
  expect(data.topics).toMatchObject([{ key: "news", name: "News" }])
  expect(data.suppressions).toMatchObject([{ address: email }])
  expect(data.unsubscribe_links).toMatchObject([{ scope_type: "category", scope_key: "news" }])
  expect(data.messages.map((one: { id: string }) => one.id)).toEqual([
    sent.body.id,
    unnamed.body.id,
  ])
  const [first] = data.messages
  expect(first).toMatchObject({ subject: "Hi", html: "<p>Hello</p>", text: "Hello" })
  expect(Buffer.from(first.attachments[0].content, "base64").toString()).toBe("file")
  expect(first.attempts).toHaveLength(1)
  expect(first.events.map(({ type }: { type: string }) => type)).toContain("email.delivered")
  expect(data.inbound_emails).toMatchObject([{ id: received.id }])
  expect(data.events.map(({ type }: { type: string }) => type)).toEqual(["subscriber.unsubscribed"])
})

test("has what names the subscribers that were merged into it, and consents of its addresses", async () => {
  const project = await service.project()
  const kept = await addSubscriber(project, { email: "ann@mailbox.test" })
  const between = await addSubscriber(project, { email: "ann.b@mailbox.test" })
  const phone = "+4915112345678"
  const first = await addSubscriber(project, { email: "old@mailbox.test", phone })
  await project.post(path(first.id, "/unsubscribe"), { channel: "sms" })
  const early = await project.post("/v1/emails", mail({ to: "old@mailbox.test" }))
  const received = await addInbound(store, project, { from_email: "old@mailbox.test" })
  await linkTo(service, project, "news", { address: "old@mailbox.test" })
  for (const address of ["ann@mailbox.test", "old@mailbox.test", "ben@mailbox.test"]) {
    await project.post("/v1/suppressions", { email: address })
    await consentOfAddress(project.project_id, address)
  }
  await project.post(path(between.id, "/merge"), { from_id: first.id })
  await project.post(path(kept.id, "/merge"), { from_id: between.id })
  const late = await project.post("/v1/emails", mail({ to: "ann.b@mailbox.test" }))

  const { data } = (await project.get(path(kept.id))).body
  const ids = (rows: { id: string }[]) => rows.map(({ id }) => id)
  expect(data.merged_subscribers).toMatchObject([
    { id: between.id, external_id: between.external_id, email: "ann.b@mailbox.test", phone },
    { id: first.id, external_id: first.external_id, email: "old@mailbox.test", phone },
  ])
  expect(ids(data.messages).sort()).toEqual([early.body.id, late.body.id].sort())
  expect(ids(data.inbound_emails)).toEqual([received.id])
  const addresses = (rows: { address: string }[]) => rows.map(({ address }) => address).sort()
  const theirs = ["ann@mailbox.test", "old@mailbox.test"]
  expect(addresses(data.suppressions)).toEqual(theirs)
  expect(addresses(data.address_consents)).toEqual(theirs)
  expect(addresses(data.unsubscribe_links)).toEqual(["old@mailbox.test"])
  expect(data.events).toMatchObject([{ type: "subscriber.unsubscribed" }])
  expect(JSON.stringify(data.events)).toContain(first.id)
})

/** What an address that no subscriber had said by the link of a mail. */
const consentOfAddress = (project_id: string, address: string) =>
  store.tx((tx) =>
    recordConsent(tx, parts.secrets, {
      ...{ project_id, address, scope: { type: "category", key: "news" } },
      ...{ action: "withdrawn", source: "page", proof: null, ip: null },
    }),
  )

test("of a subscriber without anything has empty lists", async () => {
  const project = await service.project()
  const { id } = await addSubscriber(project)
  const { data } = (await project.get(path(id))).body
  const lists = Object.entries(data).filter(([, value]) => Array.isArray(value))
  expect(lists).toHaveLength(15)
  for (const [name, list] of lists) expect([name, list]).toEqual([name, []])
})

test("of nobody, or of somebody else's subscriber, is a 404", async () => {
  const project = await service.project()
  const theirs = await addSubscriber(await service.project(), { email: "ann@mailbox.test" })
  for (const name of [theirs.id, theirs.external_id, NOBODY, "a/b"]) {
    expect(refusal(await project.get(path(name)))).toEqual([404, "subscriber_not_found"])
  }
})

test("five hundred messages stand in it once each", async () => {
  const project = await service.project()
  const email = "much@mailbox.test"
  const { id } = await addSubscriber(project, { email })
  const messages = Array.from({ length: 100 }, () => mail({ to: email }))
  for (let at = 0; at < 5; at++) {
    await project.post("/v1/emails/batch", { messages })
  }
  const { data } = (await project.get(path(id))).body
  expect(new Set(data.messages.map((one: { id: string }) => one.id)).size).toBe(500)
  expect(data.messages).toHaveLength(500)
})
