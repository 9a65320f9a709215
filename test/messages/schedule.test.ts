import { expect, test } from "bun:test"
import { Problems } from "../../src/core/errors"
import { isoFrom, millis, now, secondsFromNow } from "../../src/core/time"
import { Settler } from "../../src/jobs/settler"
import { messageTable } from "../../src/messages/pipeline"
import { cancel, reschedule } from "../../src/messages/scheduled"
import { readScheduledAt } from "../../src/messages/send-fields"
import type { RecipientOutcome } from "../../src/providers/provider"
import { movableClock } from "../harness/clock"
import { changesOf, MINUTE, ZONES } from "../harness/clock-changes"
import { quietLog } from "../harness/quiet"
import { byHand } from "./by-hand"
import { letter, outcome, PROJECT, told } from "./letters"
import { postOffice } from "./post-office"

quietLog()
const clock = movableClock()

const DAY = 86_400
const TO = "to@example.test"
const only = (status: RecipientOutcome["status"]) => outcome([told(TO, { status })])
const EMAIL = { project_id: PROJECT, channel: "email" } as const
const ALL = { project_id: PROJECT, channels: ["email" as const] }

function read(value: unknown) {
  const problems = new Problems()
  return {
    at: readScheduledAt(value, "scheduled_at", problems),
    codes: problems.list.map(({ code }) => code),
  }
}

test("a time with any offset becomes UTC; the past, null and nothing mean now", () => {
  clock.freeze()
  const at = secondsFromNow(3600)
  const local = at.replace("Z", "+00:00")
  expect(read(local)).toEqual({ at, codes: [] })
  const noon = `${secondsFromNow(DAY).slice(0, 10)}T12:00:00`
  expect(read(`${noon}+05:30`).at).toBe(`${noon.slice(0, 10)}T06:30:00.000Z`)
  for (const value of [null, undefined, now(), secondsFromNow(-1), "1970-01-01T00:00:00Z"]) {
    expect(read(value)).toEqual({ at: null, codes: [] })
  }
})

test("what has no offset, is no time or lies behind the 90 days is refused", () => {
  clock.freeze()
  const bare = secondsFromNow(3600).slice(0, -1)
  for (const value of [bare, "tomorrow", "", 5, {}, true, "2027-02-30T00:00:00Z"]) {
    expect(read(value)).toEqual({ at: null, codes: ["invalid"] })
  }
  expect(read(secondsFromNow(90 * DAY)).codes).toEqual([])
  expect(read(secondsFromNow(90 * DAY + 0.001)).codes).toEqual(["too_late"])
  expect(read("9999-12-31T23:59:59Z").codes).toEqual(["too_late"])
})

test("a scheduled message is not tried before its time, and is queued when its time has come", async () => {
  await using office = await postOffice(only("delivered"))
  const scheduled_at = secondsFromNow(45 * DAY)
  const id = await office.accept(letter({ scheduled_at }, ["copy@example.test"]))
  expect(await office.story(id)).toEqual([])
  expect(await office.read(id)).toMatchObject({
    status: "queued",
    last_event_type: null,
    next_attempt_at: scheduled_at,
  })

  clock.advance({ seconds: 45 * DAY - 5 })
  expect(await office.runDue()).toBe(0)
  clock.advance({ seconds: 5 })
  expect(await office.runDue()).toBe(1)
  expect(await office.story(id)).toEqual([
    "email.queued to",
    "email.queued copy",
    "email.sent to",
    "email.delivered to",
  ])
})

test("the age of a scheduled message counts from its time, so that it has all of its retries", async () => {
  const ages: number[] = []
  const deferred = outcome([told(TO, { status: "retry" })])
  const schedule = (_: number, age: number) => {
    ages.push(age)
    return 60
  }
  await using office = await postOffice({ ...deferred, schedule }, only("delivered"))
  const id = await office.accept(letter({ scheduled_at: secondsFromNow(60 * DAY) }))
  clock.advance({ seconds: 60 * DAY })
  await office.runDue()
  expect(ages).toHaveLength(1)
  expect(ages[0]).toBeLessThan(60)
  clock.advance({ seconds: 61 })
  await office.runDue()
  expect(await office.story(id)).toEqual([
    "email.queued to", // once, though there were two attempts
    "email.soft_bounced to",
    "email.sent to",
    "email.delivered to",
  ])
})

test("a message that is held when its time comes is queued, once", async () => {
  await using office = await postOffice(only("delivered"))
  const id = await office.accept(letter({ scheduled_at: secondsFromNow(100) }))
  clock.advance({ seconds: 100 })
  const { claims, claimOne, work } = byHand(office.store, office.channels)
  const message = await claimOne()
  const settler = new Settler(office.store, messageTable(office.store, office.channels), claims)
  const hold = { until: secondsFromNow(10), reason: "not now" }
  await settler.settle(message, { hold })
  expect(await office.story(id)).toEqual(["email.queued to"])
  clock.advance({ seconds: 10 })
  await work(await claimOne())
  expect(await office.story(id)).toEqual(["email.queued to", "email.sent to", "email.delivered to"])
})

test("a scheduled message can be moved until it is released, and not after", async () => {
  await using office = await postOffice(only("delivered"))
  const id = await office.accept(letter({ scheduled_at: secondsFromNow(DAY) }))
  const later = secondsFromNow(30 * DAY)
  await reschedule(office.store, EMAIL, id, later)
  expect(await office.read(id)).toMatchObject({ scheduled_at: later, next_attempt_at: later })
  clock.advance({ seconds: DAY })
  expect(await office.runDue()).toBe(0)

  await reschedule(office.store, EMAIL, id, null) // now
  expect(await office.runDue()).toBe(1)
  expect(await office.story(id)).toEqual(["email.queued to", "email.sent to", "email.delivered to"])
  const refused = { code: "conflict", details: { reason: "not_scheduled", id } }
  await expect(reschedule(office.store, EMAIL, id, later)).rejects.toMatchObject(refused)
  await expect(cancel(office.store, ALL, id)).rejects.toMatchObject(refused)
})

test("a message that is claimed can be neither moved nor cancelled", async () => {
  await using office = await postOffice(only("delivered"))
  const id = await office.accept(letter({ scheduled_at: secondsFromNow(100) }))
  clock.advance({ seconds: 100 })
  const { claimOne, work } = byHand(office.store, office.channels, {
    alone: office.store.read.isAlone,
  })
  const claimed = await claimOne()
  const refused = { code: "conflict", message: expect.stringContaining("it is sending") }
  await expect(cancel(office.store, ALL, id)).rejects.toMatchObject(refused)
  await expect(reschedule(office.store, EMAIL, id, null)).rejects.toMatchObject(refused)
  await work(claimed)
  expect((await office.read(id)).status).toBe("delivered")
})

test("a cancelled message has failed, was never queued, and is not sent at its time", async () => {
  await using office = await postOffice()
  const id = await office.accept(letter({ scheduled_at: secondsFromNow(DAY) }))
  await cancel(office.store, ALL, id)
  expect(await office.read(id)).toMatchObject({ status: "failed", status_reason: "cancelled" })
  expect(await office.story(id)).toEqual(["email.failed to"])
  clock.advance({ seconds: DAY })
  expect(await office.runDue()).toBe(0)
})

test("a clock that is set back holds a message until its time comes again, one that is set ahead sends it", async () => {
  await using office = await postOffice(only("delivered"), only("delivered"))
  const id = await office.accept(letter({ scheduled_at: secondsFromNow(10 * DAY) }))
  clock.advance({ seconds: 45 * DAY })
  clock.advance({ seconds: -45 * DAY })
  expect(await office.runDue()).toBe(0)
  clock.advance({ seconds: -45 * DAY })
  clock.advance({ seconds: 54 * DAY })
  expect(await office.runDue()).toBe(0)
  clock.advance({ seconds: DAY })
  expect(await office.runDue()).toBe(1)
  expect((await office.read(id)).status).toBe("delivered")
})

const DELIVERED = only("delivered")

test.each(ZONES)("both clock changes of %s move no message", async (zone) => {
  const before = process.env.TZ
  process.env.TZ = zone
  try {
    const changes = changesOf(zone)
    expect(changes).toHaveLength(2)
    await using office = await postOffice(...changes.flatMap(() => [DELIVERED, DELIVERED]))
    for (const { moment } of changes) {
      clock.freeze()
      const set = (at: number) => clock.advance({ seconds: (at - millis()) / 1000 })
      set(moment - DAY * 1000)
      const times = [moment - 30 * MINUTE, moment + 30 * MINUTE]
      for (const at of times) await office.accept(letter({ scheduled_at: isoFrom(at) }))
      for (const at of times) {
        set(at - 1)
        expect(await office.runDue()).toBe(0)
        set(at)
        expect(await office.runDue()).toBe(1)
      }
    }
  } finally {
    if (before === undefined) delete process.env.TZ
    else process.env.TZ = before
  }
})
