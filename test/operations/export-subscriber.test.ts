import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { messages } from "../../src/messages/tables"
import { addSubscriber } from "../harness/audience"
import { refusal } from "../harness/client"
import { deliverAll } from "../harness/delivery"
import { addInbound } from "../harness/inbound-rows"
import { NOBODY } from "../harness/mail"
import { sharedService } from "../harness/shared-service"
import { linkTo } from "../harness/unsubscribed"

const service = await sharedService()
const { store } = service

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
  const mail = {
    ...{ from: "me@mailbox.test", to: email, subject: "Hi", html: "<p>Hello</p>", text: "Hello" },
    attachments: [{ filename: "a.txt", content: Buffer.from("file").toString("base64") }],
  }
  const sent = await project.post("/v1/emails", mail)
  const unnamed = await project.post("/v1/emails", { ...mail, subject: "Again" })
  await project.post("/v1/emails", { ...mail, to: "other@mailbox.test" })
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

test("of a subscriber without anything has empty lists", async () => {
  const project = await service.project()
  const { id } = await addSubscriber(project)
  const { data } = (await project.get(path(id))).body
  const lists = Object.entries(data).filter(([, value]) => Array.isArray(value))
  expect(lists).toHaveLength(8)
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
  const mail = { from: "me@mailbox.test", to: email, subject: "s", text: "t" }
  for (let at = 0; at < 5; at++) {
    await project.post("/v1/emails/batch", { messages: Array.from({ length: 100 }, () => mail) })
  }
  const { data } = (await project.get(path(id))).body
  expect(new Set(data.messages.map((one: { id: string }) => one.id)).size).toBe(500)
  expect(data.messages).toHaveLength(500)
})
