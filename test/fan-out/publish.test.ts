import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { events } from "../../src/events/tables"
import { fanOuts } from "../../src/fan-out/tables"
import { messageContents } from "../../src/messages/tables"
import { subscribers } from "../../src/subscribers/tables"
import { deliverAll } from "../harness/delivery"
import { sharedService } from "../harness/shared-service"
import { audience, begun, INLINE, messagesOf, publish, record, walkAll } from "./audiences"

const service = await sharedService()
const { parts, store } = service

let provider: string | null = null

/** As under `serve` with no provider: the mailbox takes mail for its own domain only. */
const unprovided = await sharedService({
  rules: { to_mailbox: true, mailbox_takes_all: false, providerOf: async () => provider },
})

test("a publish writes one message for each member, and each is delivered with its own words", async () => {
  const project = await service.project()
  const people = [{ name: "Ann" }, { name: "Ben" }, { email: null }]
  const { topic, ids } = await audience(store, project, people)
  const { id } = await publish(service, project, topic)
  expect(await record(parts, id)).toMatchObject({ status: "queued", audience: 0 })
  await walkAll(service)
  expect(await record(parts, id)).toMatchObject({
    status: "completed",
    audience: 3,
    channels: { email: { planned: 3, sent: 2, skipped: { no_address: 1 }, failed: 0 } },
  })
  const made = await messagesOf(parts, project, id)
  expect(made.map(({ subscriber_id }) => subscriber_id)).toEqual(ids.slice(0, 2))
  expect(made[0]).toMatchObject({ subject: "News for you", stream: "broadcast", source: "topic" })

  const handed = await deliverAll(service)
  const raws = handed.map(({ raw }) => Buffer.from(raw).toString()).sort()
  expect(raws.map((raw) => /Hello (\w+)/.exec(raw)?.[1]).sort()).toEqual(["Ann", "Ben"])
  const [first] = made
  const got = await project.get(`/v1/emails/${first?.id}`)
  expect(got.status).toBe(200)
  expect(got.body.data).toMatchObject({
    html: "<p>Hello Ann</p>",
    text: "Hello Ann",
    subject: "News for you",
  })
  const raw = await project.get(`/v1/emails/${first?.id}/raw`)
  expect(raws).toContain(raw.text)
})

test("what all messages say is stored once", async () => {
  const project = await service.project()
  const { topic } = await audience(store, project, [{ name: "Ann" }, { name: "Ben" }])
  const { id } = await publish(service, project, topic)
  await walkAll(service)
  const [message] = await messagesOf(parts, project, id)
  const rows = store.read.select().from(messageContents)
  const [row] = await rows.where(eq(messageContents.message_id, message?.id ?? ""))
  expect(row?.content).toMatchObject({ shared: "email", subscriber: { name: "Ann" } })
  expect(JSON.stringify(row?.content)).not.toContain("Hello")
})

test("its end is told once, with the counts", async () => {
  const project = await service.project()
  const { topic } = await audience(store, project, [{}, {}])
  const { id } = await publish(service, project, topic)
  await walkAll(service)
  const told = await store.read.select().from(events).where(eq(events.subject_id, id))
  expect(told.map(({ type }) => type)).toEqual(["topic.publish_completed"])
  expect(told[0]?.data).toMatchObject({
    publish_id: id,
    topic_key: topic.key,
    audience: 2,
    counts: { email: { sent: 2 } },
  })
  const [row] = await store.read.select().from(fanOuts).where(eq(fanOuts.id, id))
  expect(row?.completed_at).not.toBeNull()
})

test("a message that cannot be rendered fails by itself, and is counted", async () => {
  const project = await service.project()
  const { topic } = await audience(store, project, [{}, { metadata: { code: "42" } }])
  const email = { ...INLINE, html: "<p>{{subscriber.metadata.code}}</p>" }
  const { id } = await publish(service, project, topic, { content: { email } })
  await walkAll(service)
  await deliverAll(service)
  const made = await messagesOf(parts, project, id)
  expect(made.map(({ status, error }) => [status, error?.code])).toEqual([
    ["failed", "template_render_failed"],
    ["delivered", undefined],
  ])
  expect((await record(parts, id)).channels.email).toMatchObject({ sent: 2, failed: 1 })
  expect((await project.get(`/v1/emails/${made[0]?.id}`)).body.data).toMatchObject({ html: null })
})

test("personal subjects are rendered before the message is written", async () => {
  const project = await service.project()
  const { topic } = await audience(store, project, [{ name: "Ann" }, { name: "Ben" }])
  const email = { ...INLINE, subject: "News for {{subscriber.name}}" }
  const { id } = await publish(service, project, topic, { content: { email } })
  await walkAll(service)
  const made = await messagesOf(parts, project, id)
  expect(made.map(({ subject }) => subject)).toEqual(["News for Ann", "News for Ben"])
})

test("each recipient gets the template in its own language", async () => {
  const project = await service.project()
  await project.post("/v1/templates", {
    name: "news",
    subject: "News",
    html: "<p>Hello {{subscriber.external_id}}</p>",
    locales: { de: { subject: "Neues", html: "<p>Hallo {{subscriber.external_id}}</p>" } },
  })
  const { topic } = await audience(store, project, [{ locale: "de-AT" }, { locale: "fr" }, {}])
  const { id } = await publish(service, project, topic, {
    template: "news",
    content: { email: { ...INLINE, html: null } },
  })
  await walkAll(service)
  await deliverAll(service)
  const made = await messagesOf(parts, project, id)
  expect(made.map(({ subject }) => subject)).toEqual(["Neues", "News", "News"])
  const bodies = await Promise.all(made.map((one) => project.get(`/v1/emails/${one.id}/content`)))
  expect(bodies.map(({ body }) => body.data.html)).toEqual([
    "<p>Hallo reader-0</p>",
    "<p>Hello reader-1</p>",
    "<p>Hello reader-2</p>",
  ])
})

test("the template's own language is its own texts, also where its base language has others", async () => {
  const project = await service.project()
  await project.post("/v1/templates", {
    name: "greeting",
    locale: "de-AT",
    subject: "Servus",
    html: "<p>Servus</p>",
    locales: {
      de: { subject: "Hallo", html: "<p>Hallo</p>" },
      "de-CH-1996": { subject: "Servus", html: "<p>Servus</p>" },
    },
  })
  const readers = ["de-AT", "de-DE", "de-CH-1996", "de-CH", "fr"].map((locale) => ({ locale }))
  const { topic, ids } = await audience(store, project, readers)
  const { id } = await publish(service, project, topic, {
    template: "greeting",
    content: { email: { ...INLINE, html: null } },
  })
  await walkAll(service)
  await deliverAll(service)
  const made = await messagesOf(parts, project, id)
  const subjects = made.map(({ subject }) => subject)
  expect(subjects).toEqual(["Servus", "Hallo", "Servus", "Hallo", "Servus"])
  const bodies = await Promise.all(made.map((one) => project.get(`/v1/emails/${one.id}/content`)))
  expect(bodies.map(({ body }) => body.data.html)).toEqual(subjects.map((one) => `<p>${one}</p>`))
  for (const [at, subscriber_id] of ids.entries()) {
    const to = `reader-${at}@example.test`
    const single = { from: INLINE.from, to, subscriber_id, template_id: "greeting" }
    const sent = await project.post("/v1/emails", single)
    const email = await project.get(`/v1/emails/${sent.body.data.id}`)
    expect(email.body.data.subject).toBe(subjects[at] as string)
  }
})

test("each recipient reads dates and hours as they are where it is, else where the project is", async () => {
  const project = await service.project()
  await project.call("PATCH", "/v1/settings", { body: { timezone: "Asia/Tokyo" } })
  const { topic } = await audience(store, project, [{ timezone: "America/New_York" }, {}])
  const when = `{{date begins "HH:mm"}}`
  const email = { ...INLINE, subject: `At ${when}`, html: `<p>${when}</p>` }
  const variables = { begins: "2026-01-15T12:00:00Z" }
  const { id } = await publish(service, project, topic, { content: { email }, variables })
  await walkAll(service)
  const made = await messagesOf(parts, project, id)
  expect(made.map(({ subject }) => subject)).toEqual(["At 07:00", "At 21:00"])
  const bodies = await Promise.all(made.map((one) => project.get(`/v1/emails/${one.id}/content`)))
  expect(bodies.map(({ body }) => body.data.html)).toEqual(["<p>07:00</p>", "<p>21:00</p>"])
})

test("a message that is sent again says the same, and belongs to no publish", async () => {
  const project = await service.project()
  const { topic, ids } = await audience(store, project, [{ name: "Ann" }])
  const { id } = await publish(service, project, topic)
  await walkAll(service)
  await deliverAll(service)
  await store.tx((tx) =>
    tx
      .update(subscribers)
      .set({ name: "Eve" })
      .where(eq(subscribers.id, ids[0] ?? "")),
  )
  const [first] = await messagesOf(parts, project, id)
  const again = await project.post(`/v1/emails/${first?.id}/resend`, {})
  expect(again.status).toBe(201)
  const got = await project.get(`/v1/emails/${again.body.data.id}`)
  expect(got.body.data).toMatchObject({ html: "<p>Hello Ann</p>", subject: "News for you" })
  expect((await record(parts, id)).channels.email?.sent).toBe(1)
})

test("it waits before a member that no provider can deliver to, and goes on when one can", async () => {
  const project = await unprovided.project()
  const people = [{ email: "ann@mailbox.test" }, { email: "ben@example.test" }, {}]
  const { topic } = await audience(unprovided.store, project, people)
  const { id } = await publish(unprovided, project, topic)
  const walk = await begun(unprovided, id)
  expect(await walk.step()).toEqual({ wait_seconds: 60 })
  expect(await record(unprovided.parts, id)).toMatchObject({
    ...{ status: "paused", status_reason: "no_provider" },
    channels: { email: { planned: 3, sent: 1, failed: 0 } },
  })
  expect(await walk.step()).toEqual({ wait_seconds: 60 })
  const before = await messagesOf(unprovided.parts, project, id)
  expect(before.map(({ address: recipient }) => recipient)).toEqual(["ann@mailbox.test"])

  provider = "smtp"
  await walkAll(unprovided)
  expect(await record(unprovided.parts, id)).toMatchObject({
    ...{ status: "completed", status_reason: null },
    channels: { email: { planned: 3, sent: 3, failed: 0 } },
  })
})
