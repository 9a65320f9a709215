import { expect, test } from "bun:test"
import { asc, eq } from "drizzle-orm"
import { events } from "../../src/events/tables"
import type { Outcome, RecipientOutcome } from "../../src/providers/provider"
import { quietLog } from "../harness/quiet"
import { letter, outcome, told } from "./letters"
import { postOffice } from "./post-office"

quietLog()

const TO = "to@example.test"
const only = (status: RecipientOutcome["status"], more: Partial<RecipientOutcome> = {}) =>
  outcome([told(TO, { status, ...more })])

test.each<[RecipientOutcome["status"], string[]]>([
  ["sent", ["email.queued to", "email.sent to"]],
  ["delivered", ["email.queued to", "email.sent to", "email.delivered to"]],
  ["bounced", ["email.queued to", "email.bounced to"]],
  ["failed", ["email.queued to", "email.failed to"]],
])(
  "an attempt that ends as %s settles the message, its story and its job",
  async (status, tale) => {
    await using office = await postOffice(only(status, { reason: "words" }))
    const id = await office.accept()

    expect(await office.runDue()).toBe(1)
    const message = await office.read(id)
    expect(message).toMatchObject({
      status,
      status_reason: "words",
      provider: "smtp",
      attempts: 1,
      next_attempt_at: null,
      recipients: [{ status, status_reason: "words" }],
      last_event_type: `email.${status}`,
    })
    expect(await office.story(id)).toEqual(tale)
    expect(await office.jobs()).toEqual([])
    const moments = [message.sent_at, message.delivered_at, message.bounced_at].map(Boolean)
    const expected = {
      sent: [true, false, false],
      delivered: [true, true, false],
      bounced: [false, false, true],
      failed: [false, false, false],
      expired: [],
      retry: [],
    }
    expect(moments).toEqual(expected[status])
  },
)

test("every attempt is kept with the server's words", async () => {
  const reply = {
    smtp_code: 550,
    enhanced_code: "5.1.1",
    response: "550 5.1.1 nobody",
    mx: "mx.example.test",
    tls: "TLSv1.3",
  }
  await using office = await postOffice(only("bounced", { reply, reason: "550 5.1.1 nobody" }))
  const id = await office.accept()
  await office.runDue()

  const [attempt, ...more] = await office.attempts(id)
  expect(attempt).toMatchObject({ attempt: 1, provider: "smtp", outcome: "bounced", ...reply })
  expect(attempt?.transcript).toEqual(["MAIL FROM"])
  expect(more).toEqual([])
  expect((await office.read(id)).error).toEqual({
    code: "bounced",
    message: "550 5.1.1 nobody",
    smtp_code: 550,
    enhanced_code: "5.1.1",
  })
})

test("a bounce tells its kind and the address, a failure its error", async () => {
  const failed = told("cc@example.test", { status: "failed", code: "provider_error", reason: "no" })
  const bounced = told(TO, { status: "bounced", bounce_subtype: "MailboxFull" })
  await using office = await postOffice(outcome([bounced, failed]))
  const id = await office.accept(
    letter({ tags: ["a"], metadata: { order: 7 } }, ["cc@example.test"]),
  )
  await office.runDue()

  const rows = office.store.read.select().from(events).where(eq(events.subject_id, id))
  const [, , ...ends] = await rows.orderBy(asc(events.position), asc(events.id))
  const common = { message_id: id, tags: ["a"], metadata: { order: 7 }, subject: "Ding" }
  expect(ends.map(({ data }) => data)).toMatchObject([
    { ...common, recipient_email: TO, bounce_type: "Permanent", bounce_subtype: "MailboxFull" },
    {
      ...common,
      recipient_email: "cc@example.test",
      bounce_type: null,
      error: { code: "provider_error", message: "no" },
    },
  ])
})

test("an outcome that speaks of a stranger, or of somebody settled, moves nobody", async () => {
  const stranger = told("stranger@example.test", { status: "bounced" })
  await using office = await postOffice(outcome([told(TO, { status: "sent" }), stranger]))
  const id = await office.accept()

  await office.runDue()
  expect(await office.story(id)).toEqual(["email.queued to", "email.sent to"])
})

test("while an attempt runs the message says so", async () => {
  const answer = Promise.withResolvers<Outcome>()
  const asked = Promise.withResolvers<void>()
  await using office = await postOffice(() => {
    asked.resolve()
    return answer.promise
  })
  const id = await office.accept()
  const run = office.runDue()
  await asked.promise

  expect(await office.read(id)).toMatchObject({ status: "sending", attempts: 1 })
  answer.resolve(only("sent"))
  await run
  expect(await office.read(id)).toMatchObject({ status: "sent" })
})
