import { describe, expect, test } from "bun:test"
import { now } from "../../src/core/time"
import { attempts } from "../../src/messages/tables"
import { bounced, deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const file = {
  filename: "Bericht für Ann.txt",
  content: Buffer.from("Ding\n").toString("base64"),
  content_type: "text/html",
}

const whole = mail({
  to: "Ann Bell <Ann@example.test>",
  cc: "copy@example.test",
  bcc: ["hidden@example.test"],
  subject: "Grüße ✓",
  html: "<h1>Ding</h1><p>Dong</p>",
  text: undefined,
  reply_to: ["Desk <desk@example.test>", { email: "two@example.test", name: "Desk, two" }],
  tags: [{ name: "kind", value: "bell" }],
  metadata: { order: 7 },
  headers: { "X-Kind": "bell" },
  attachments: [file],
})

/** An email of a new project, with everything in it. */
async function sendWhole() {
  const project = await service.project()
  const { id } = (await project.post("/v1/emails", whole)).body
  const get = async (rest = "") => (await project.get(`/v1/emails/${id}${rest}`)).body?.data
  return { project, id, get }
}

describe("the record", () => {
  test("has every field, from the first moment on", async () => {
    const { project, id, get } = await sendWhole()
    const recipient = { status: "queued", status_reason: null }
    expect(await get()).toEqual({
      id,
      project_id: project.project_id,
      batch_id: null,
      rfc_message_id: `<${id}@example.test>`,
      status: "queued",
      status_reason: null,
      from: { email: "bell@example.test", name: null },
      to: { email: "Ann@example.test", name: "Ann Bell" },
      cc: [{ email: "copy@example.test", name: null }],
      bcc: [{ email: "hidden@example.test", name: null }],
      recipients: [
        { email: "Ann@example.test", kind: "to", ...recipient },
        { email: "copy@example.test", kind: "cc", ...recipient },
        { email: "hidden@example.test", kind: "bcc", ...recipient },
      ],
      reply_to: [
        { email: "desk@example.test", name: "Desk" },
        { email: "two@example.test", name: "Desk, two" },
      ],
      subject: "Grüße ✓",
      html: "<h1>Ding</h1><p>Dong</p>",
      text: expect.stringContaining("Dong"),
      headers: { "X-Kind": "bell" },
      tags: ["kind:bell"],
      metadata: { order: 7 },
      template: null,
      attachments: [
        {
          id: expect.any(String),
          filename: file.filename,
          content_type: "text/html",
          size: 5,
          sha256: new Bun.CryptoHasher("sha256").update("Ding\n").digest("hex"),
        },
      ],
      track_opens: false,
      track_clicks: false,
      open_count: 0,
      click_count: 0,
      opened_at: null,
      last_opened_at: null,
      clicked_at: null,
      last_event: { type: "email.queued", timestamp: expect.stringMatching(TIME) },
      stream: "transactional",
      source: "api",
      category: null,
      subscriber_id: null,
      api_key_id: project.key_id,
      idempotency_key: null,
      provider: null,
      attempts: 0,
      next_attempt_at: null,
      error: null,
      timeline: expect.any(Array),
      thread_id: id,
      sandbox: false,
      scheduled_at: null,
      queued_at: expect.stringMatching(TIME),
      sent_at: null,
      delivered_at: null,
      bounced_at: null,
      created_at: expect.stringMatching(TIME),
      updated_at: expect.stringMatching(TIME),
    })
  })

  test("tells of the delivery", async () => {
    const { get, id } = await sendWhole()
    await deliverAll(service)
    const record = await get()
    expect(record).toMatchObject({
      status: "delivered",
      provider: "mailbox",
      attempts: 1,
      error: null,
    })
    expect([record.sent_at, record.delivered_at]).toEqual(
      Array(2).fill(expect.stringMatching(TIME)),
    )

    // One fact has one time, wherever it is told.
    const timeOf = (wanted: string) =>
      record.timeline.find(({ type }: Record<string, string>) => type === wanted)?.timestamp
    expect([timeOf("email.queued"), timeOf("email.sent"), timeOf("email.delivered")]).toEqual([
      record.queued_at,
      record.sent_at,
      record.delivered_at,
    ])
    expect(record.last_event.timestamp).toBe(record.updated_at)

    const { email_id, status, events } = await get("/events")
    expect([email_id, status]).toEqual([id, "delivered"])
    const ofAnn = events.filter(
      ({ recipient_email }: Record<string, string>) => recipient_email === "Ann@example.test",
    )
    const types = ["email.queued", "email.sent", "email.delivered"]
    expect(ofAnn.map(({ type }: Record<string, string>) => type)).toEqual(types)
    expect(events).toHaveLength(9)
    expect(ofAnn[2]).toEqual({
      id: expect.stringMatching(/^evt_/),
      type: "email.delivered",
      timestamp: expect.stringMatching(TIME),
      recipient_email: "Ann@example.test",
      bounce_type: null,
      bounce_subtype: null,
      complaint_feedback_type: null,
      url: null,
      user_agent: null,
      actor: null,
      detail: {
        smtp_code: 250,
        enhanced_code: "2.0.0",
        mx: "127.0.0.1",
        tls: null,
        response: "250 2.0.0 Kept",
      },
    })
    const timeline = record.timeline.map(({ type }: Record<string, string>) => type)
    expect(timeline).toEqual(events.map(({ type }: Record<string, string>) => type))
  })

  test("tells of a bounce, with the server's words", async () => {
    const { get } = await sendWhole()
    await deliverAll(service, bounced)
    const { status, status_reason, error, bounced_at, recipients } = await get()
    expect([status, status_reason]).toEqual(["bounced", "550 5.1.1 No such user"])
    expect(error).toMatchObject({ smtp_code: 550, enhanced_code: "5.1.1" })
    expect(bounced_at).toMatch(TIME)
    expect(recipients.map((one: { status: string }) => one.status)).toEqual(
      Array(3).fill("bounced"),
    )
    const { events } = await get("/events")
    expect(events.at(-1)).toMatchObject({
      type: "email.bounced",
      bounce_type: "Permanent",
      bounce_subtype: "NoEmail",
    })
  })
})

test("events answer POST as they answer GET", async () => {
  const { project, id, get } = await sendWhole()
  for (const body of [undefined, {}]) {
    const { status, body: answer } = await project.post(`/v1/emails/${id}/events`, body)
    expect([status, answer.data]).toEqual([200, await get("/events")])
  }
})

test("content is subject, bodies and headers", async () => {
  const { get } = await sendWhole()
  expect(await get("/content")).toEqual({
    subject: "Grüße ✓",
    html: "<h1>Ding</h1><p>Dong</p>",
    text: expect.stringContaining("Dong"),
    headers: { "X-Kind": "bell" },
  })
})

test("attempts tell what was said", async () => {
  const { get } = await sendWhole()
  expect(await get("/attempts")).toEqual([])
  await deliverAll(service, bounced)
  expect(await get("/attempts")).toEqual([
    {
      attempt: 1,
      provider: "mailbox",
      started_at: expect.stringMatching(TIME),
      duration_ms: expect.any(Number),
      outcome: "bounced",
      mx: "127.0.0.1",
      tls: null,
      smtp_code: 550,
      enhanced_code: "5.1.1",
      response: "550 5.1.1 No such user",
      transcript: ["S: 220 ready"],
    },
  ])
})

test("attempts are a list with pages", async () => {
  const { project, id } = await sendWhole()
  const attempt = (at: number) => ({
    message_id: id,
    attempt: at,
    provider: "mailbox",
    started_at: now(),
    duration_ms: 1,
    outcome: "retry",
    transcript: [],
  })
  await service.store.tx((tx) => tx.insert(attempts).values([1, 2, 10].map(attempt)))
  const page = (query: string) => project.get(`/v1/emails/${id}/attempts?${query}`)
  const numbers = ({ body }: Awaited<ReturnType<typeof page>>) =>
    body.data.map(({ attempt }: { attempt: number }) => attempt)

  const first = await page("per_page=2")
  expect(numbers(first)).toEqual([1, 2])
  expect(first.body.meta).toMatchObject({ page: 1, per_page: 2, total: 3, total_pages: 2 })
  expect(first.body.data[0]).not.toHaveProperty("id")
  expect(numbers(await page("per_page=2&page=2"))).toEqual([10])
  expect(numbers(await page(`cursor=${first.body.meta.next_cursor}`))).toEqual([10])
  expect((await page("per_page=0")).status).toBe(422)
})

test.each([
  [{ reply_to: "jörg@example.test" }, true],
  [{ cc: ["jörg@example.test"] }, true],
  [{ bcc: ["jörg@example.test"] }, false],
  [{ reply_to: "ann@münchen.de" }, false],
])("a header with %j needs SMTPUTF8: %p", async (more, needed) => {
  const project = await service.project()
  const { id } = (await project.post("/v1/emails", { ...whole, ...more })).body
  const handed = await deliverAll(service)
  expect(handed.find(({ message_id }) => message_id === id)?.smtputf8).toBe(needed)
})
