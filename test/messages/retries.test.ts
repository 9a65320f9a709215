import { expect, test } from "bun:test"
import { millisFrom } from "../../src/core/time"
import { DEAD, LEASED } from "../../src/jobs/work-item"
import type { RecipientOutcome } from "../../src/providers/provider"
import { movableClock } from "../harness/clock"
import { quietLog } from "../harness/quiet"
import { letter, outcome, told } from "./letters"
import { postOffice } from "./post-office"

quietLog()
const clock = movableClock()

const TO = "to@example.test"
const only = (status: RecipientOutcome["status"], more: Partial<RecipientOutcome> = {}) =>
  outcome([told(TO, { status, ...more })])

test("a deferral waits with its reason and its moment, then the next attempt delivers", async () => {
  await using office = await postOffice(only("retry"), only("retry"), only("delivered"))
  const id = await office.accept()

  await office.runDue()
  const waiting = await office.read(id)
  const [job] = await office.jobs()
  expect(waiting).toMatchObject({ status: "queued", status_reason: "451 4.2.0 later", attempts: 1 })
  expect(waiting.error?.message).toBe("451 4.2.0 later")
  expect(waiting.next_attempt_at).toBe(job?.run_at ?? "")
  expect(millisFrom(waiting.next_attempt_at ?? "")).toBeGreaterThan(Date.now())
  expect(await office.runDue()).toBe(0)

  clock.advance({ seconds: 61 })
  await office.runDue()
  expect(office.attempted[1]).toMatchObject({ state: LEASED, attempt: 2 })
  clock.advance({ seconds: 61 })
  await office.runDue()
  const end = await office.read(id)
  expect(end).toMatchObject({ status: "delivered", status_reason: null, error: null, attempts: 3 })
  expect(end.next_attempt_at).toBeNull()
  expect(await office.story(id)).toEqual([
    "email.queued to",
    "email.soft_bounced to", // the first deferral only
    "email.sent to",
    "email.delivered to",
  ])
  expect((await office.attempts(id)).map((one) => one.outcome)).toEqual([
    "retry",
    "retry",
    "delivered",
  ])
})

test("a message that is deferred to the end has failed, and its job stays with the reason", async () => {
  const twice = (attempt: number) => (attempt < 2 ? 60 : undefined)
  const deferred = () => outcome([told(TO, { status: "retry" })], { next: twice })
  await using office = await postOffice(deferred(), deferred())
  const id = await office.accept()

  await office.runDue()
  clock.advance({ seconds: 61 })
  await office.runDue()
  const message = await office.read(id)
  expect(message).toMatchObject({ status: "failed", status_reason: "expired", attempts: 2 })
  expect(message.error).toMatchObject({ code: "provider_error", message: "451 4.2.0 later" })
  expect(message.next_attempt_at).toBeNull()
  expect(await office.story(id)).toEqual([
    "email.queued to",
    "email.soft_bounced to",
    "email.failed to",
  ])
  expect(await office.jobs()).toMatchObject([{ state: DEAD, last_error: "expired" }])
  expect(await office.attempts(id)).toMatchObject([
    { attempt: 1, outcome: "retry", response: "451 4.2.0 later" },
    { attempt: 2, outcome: "failed", response: "451 4.2.0 later" },
  ])
})

test("a fault of ours puts the message back, says so, and hides no later deferral", async () => {
  await using office = await postOffice(
    new Error("the composer broke"),
    only("retry"),
    new Error("again"),
    only("sent"),
  )
  const id = await office.accept()

  await office.runDue()
  const broken = await office.read(id)
  expect(broken.status).toBe("queued")
  expect(broken.status_reason).toContain("internal error")
  expect(await office.jobs()).toMatchObject([
    { last_error: "An internal error stopped the attempt. The message is tried again." },
  ])
  expect(broken.next_attempt_at).toBe((await office.jobs())[0]?.run_at ?? "")

  for (let n = 0; n < 3; n++) {
    clock.advance({ seconds: 120 })
    await office.runDue()
  }
  expect(await office.story(id)).toEqual([
    "email.queued to",
    "email.soft_bounced to",
    "email.sent to",
  ])
})

test("a fault that never ends fails the message in the end", async () => {
  await using office = await postOffice(...Array.from({ length: 3 }, () => new Error("broken")))
  const id = await office.accept()

  await office.runDue()
  clock.advance({ seconds: 49 * 3600 })
  await office.runDue()
  expect(await office.read(id)).toMatchObject({ status: "failed", status_reason: "expired" })
  expect(await office.story(id)).toEqual(["email.queued to", "email.failed to"])
  expect(await office.jobs()).toMatchObject([{ state: DEAD }])
})

test("only who is still open is tried again, and each one has a story of his own", async () => {
  const [cc, bcc] = ["cc@example.test", "bcc@example.test"]
  const first = [
    told(TO, { status: "sent" }),
    told(cc, { status: "retry" }),
    told(bcc, { status: "bounced" }),
  ]
  await using office = await postOffice(
    outcome(first),
    outcome([told(cc, { status: "retry" })]),
    outcome([told(cc, { status: "delivered" })]),
  )
  const id = await office.accept(letter({}, [cc], [bcc]))

  await office.runDue()
  const after = await office.read(id)
  expect(after).toMatchObject({ status: "sent", attempts: 1 })
  expect(after.recipients.map(({ status }) => status)).toEqual(["sent", "queued", "bounced"])
  expect(after.next_attempt_at).toBeString()

  clock.advance({ seconds: 61 })
  await office.runDue()
  expect(await office.read(id)).toMatchObject({ status: "sent", attempts: 2 })
  clock.advance({ seconds: 61 })
  await office.runDue()
  const end = await office.read(id)
  expect(end).toMatchObject({ status: "sent", attempts: 3, next_attempt_at: null })
  expect(end.recipients.map(({ status }) => status)).toEqual(["sent", "delivered", "bounced"])
  expect(await office.story(id)).toEqual([
    "email.queued to",
    "email.queued cc",
    "email.queued bcc",
    "email.sent to",
    "email.soft_bounced cc",
    "email.bounced bcc",
    "email.sent cc",
    "email.delivered cc",
  ])
})
