import { expect, test } from "bun:test"
import { cancel } from "../../src/emails/emails"
import * as pipeline from "../../src/messages/pipeline"
import { feedback } from "../../src/messages/settle"
import type { Status } from "../../src/messages/tables"
import type { Outcome } from "../../src/providers/provider"
import { movableClock } from "../harness/clock"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { refusal } from "../store/facts"
import { byHand } from "./by-hand"
import { letter, outcome, PROJECT, told } from "./letters"
import { type PostOffice, postOffice } from "./post-office"

quietLog()
const clock = movableClock()

const TO = "to@example.test"
const CC = "cc@example.test"

const delivered = () => outcome([told(TO, { status: "delivered" })])

const hear = (office: PostOffice, id: string, type: Status, recipient_email = TO) =>
  office.store.tx((tx) => feedback(tx, id, { type, address: recipient_email }))

const cancelled = (office: PostOffice, id: string) => cancel(office.store, PROJECT, id)

test("a complaint after delivery is the last word", async () => {
  await using office = await postOffice(delivered())
  const id = await office.accept()
  await office.runDue()

  await hear(office, id, "complained")
  const message = await office.read(id)
  expect(message).toMatchObject({ status: "complained", last_event_type: "email.complained" })
  expect(message.delivered_at).toBeString()
  expect((await office.story(id)).at(-1)).toBe("email.complained to")
})

test("a complaint that comes twice is told once", async () => {
  await using office = await postOffice(delivered())
  const id = await office.accept()
  await office.runDue()

  await Promise.all([hear(office, id, "complained"), hear(office, id, "complained")])
  const told = await office.story(id)
  expect(told.filter((line) => line === "email.complained to")).toHaveLength(1)
})

test("a late bounce outranks a delivery", async () => {
  await using office = await postOffice(delivered())
  const id = await office.accept()
  await office.runDue()

  await office.store.tx((tx) =>
    feedback(tx, id, {
      type: "bounced",
      address: TO,
      bounce_type: "Permanent",
      bounce_subtype: "MailboxFull",
      error: { code: "bounced", message: "552 5.2.2 full" },
    }),
  )
  const message = await office.read(id)
  expect(message).toMatchObject({ status: "bounced", status_reason: "552 5.2.2 full" })
  expect([message.delivered_at, message.bounced_at].map(Boolean)).toEqual([true, true])
  expect((await office.story(id)).at(-1)).toBe("email.bounced to")
})

test("a late delivery report enters the story, and moves no status down", async () => {
  await using office = await postOffice(outcome([told(TO, { status: "bounced" })]))
  const id = await office.accept()
  await office.runDue()

  await hear(office, id, "delivered")
  expect(await office.read(id)).toMatchObject({ status: "bounced" })
  expect((await office.story(id)).at(-1)).toBe("email.delivered to")
})

test("what is said of a stranger, or of no message at all, is not heard", async () => {
  await using office = await postOffice(delivered())
  const id = await office.accept()
  await office.runDue()
  const before = [await office.read(id), await office.story(id)]

  await hear(office, id, "complained", "stranger@example.test")
  await hear(office, idFor("no-such-message"), "complained")
  expect([await office.read(id), await office.story(id)]).toEqual(before)
})

test("news of one recipient leave the other one waiting for his moment", async () => {
  const first = [told(TO, { status: "retry" }), told(CC, { status: "delivered" })]
  await using office = await postOffice(outcome(first), delivered())
  const id = await office.accept(letter({}, [CC]))
  await office.runDue()
  const before = await office.read(id)

  await hear(office, id, "complained", CC)
  const after = await office.read(id)
  expect(after).toMatchObject({ status: "queued", next_attempt_at: before.next_attempt_at })
  expect(after.next_attempt_at).toBeString()
  expect(after.recipients.map(({ status }) => status)).toEqual(["queued", "complained"])
})

test("news in the middle of an attempt do not make the message look as if it waited", async () => {
  const answer = Promise.withResolvers<Outcome>()
  const asked = Promise.withResolvers<void>()
  const first = [told(TO, { status: "retry" }), told(CC, { status: "delivered" })]
  await using office = await postOffice(outcome(first), () => {
    asked.resolve()
    return answer.promise
  })
  const id = await office.accept(letter({}, [CC]))
  await office.runDue()
  clock.advance({ seconds: 61 })
  const run = office.runDue()
  await asked.promise

  await hear(office, id, "complained", CC)
  expect((await office.read(id)).status).toBe("sending")
  expect(await refusal(cancelled(office, id))).toContain("sending")
  answer.resolve(delivered())
  await run
  expect(await office.read(id)).toMatchObject({ status: "delivered" })
})

test("what is known from elsewhere, the end of an attempt does not overwrite", async () => {
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<Outcome>()
  await using office = await postOffice(() => {
    asked.resolve()
    return answer.promise
  })
  const id = await office.accept()
  const run = office.runDue()
  await asked.promise
  await hear(office, id, "complained")
  answer.resolve(outcome([told(TO, { status: "retry" })]))
  await run

  expect(await office.read(id)).toMatchObject({ status: "complained", next_attempt_at: null })
  expect(await office.story(id)).toEqual(["email.queued to", "email.complained to"])
})

test("a queued message can be cancelled, and is not sent", async () => {
  await using office = await postOffice()
  const id = await office.accept(letter({}, [CC]))

  await cancelled(office, id)
  const message = await office.read(id)
  expect(message).toMatchObject({ status: "failed", status_reason: "cancelled" })
  expect(message.error).toMatchObject({ code: "cancelled" })
  expect(message.recipients.map(({ status }) => status)).toEqual(["failed", "failed"])
  expect((await office.story(id)).slice(2)).toEqual(["email.failed to", "email.failed cc"])
  expect(await office.jobs()).toEqual([])
  expect(await office.runDue()).toBe(0)
})

test("a deferred message can be cancelled while it waits", async () => {
  await using office = await postOffice(outcome([told(TO, { status: "retry" })]))
  const id = await office.accept()
  await office.runDue()

  await cancelled(office, id)
  expect(await office.read(id)).toMatchObject({ status: "failed", next_attempt_at: null })
  expect(await office.jobs()).toEqual([])
})

test("a message that is on its way, or settled, cannot be cancelled", async () => {
  const answer = Promise.withResolvers<Outcome>()
  const asked = Promise.withResolvers<void>()
  await using office = await postOffice(() => {
    asked.resolve()
    return answer.promise
  })
  const id = await office.accept()
  const run = office.runDue()
  await asked.promise

  expect(await refusal(cancelled(office, id))).toContain("sending")
  answer.resolve(delivered())
  await run
  expect(await refusal(cancelled(office, id))).toContain("delivered")
  expect(await office.read(id)).toMatchObject({ status: "delivered" })
})

test("a message whose job was claimed a moment ago is cancelled, or sent, never both", async () => {
  const script = Array.from({ length: 20 }, delivered)
  await using office = await postOffice(...script)
  const { store, channels } = office

  for (let round = 0; round < 20; round++) {
    const message_id = await office.accept()
    const hand = byHand(store, channels)
    const message = await hand.claimOne()
    const [ended, attempt] = await Promise.allSettled([
      cancelled(office, message_id),
      hand.tried(message),
    ])
    expect(attempt.status).toBe("fulfilled")
    const wasSent = office.attempted.some(({ id }) => id === message_id)
    expect(wasSent).toBe(ended.status === "rejected")
  }
})

test("an attempt that lost its lease changes nothing when it comes back", async () => {
  const late = Promise.withResolvers<Outcome>()
  const asked = Promise.withResolvers<void>()
  await using office = await postOffice(() => {
    asked.resolve()
    return late.promise
  }, delivered())
  const { store, channels } = office
  const id = await office.accept()
  const me = byHand(store, channels) // a loop would claim what comes back, and keep its lease
  const slow = me.work(await me.claimOne())
  await asked.promise

  clock.advance({ seconds: 31 })
  expect(await pipeline.messageRows.sweep(store, [])).toBe(1)
  expect(await office.runDue()).toBe(1)
  const before = [await office.read(id), await office.story(id), await office.attempts(id)]
  expect(before[0]).toMatchObject({ status: "delivered", attempts: 2 })

  late.resolve(outcome([told(TO, { status: "bounced" })]))
  await slow
  expect([await office.read(id), await office.story(id), await office.attempts(id)]).toEqual(before)
})

test("an attempt that wakes up after its lease was taken over is not begun", async () => {
  await using office = await postOffice(delivered())
  const { store, channels } = office
  await office.accept()
  const [me, another] = [byHand(store, channels), byHand(store, channels, { owner: "another" })]
  const mine = await me.claimOne()
  clock.advance({ seconds: 31 })
  await pipeline.messageRows.sweep(store, [])
  const theirs = await another.claimOne()

  expect(await me.tried(mine)).toEqual({})
  expect(office.attempted).toEqual([])
  expect(await another.tried(theirs)).toHaveProperty("end")
  expect(office.attempted).toHaveLength(1)
})
