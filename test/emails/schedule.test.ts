import { expect, test } from "bun:test"
import { mailboxSchedule, smtpSchedule } from "../../src/emails/providers/provider"
import type { RetrySchedule } from "../../src/jobs/work-item"

const HOUR = 3600

/** All waits until the schedule gives up, as if attempts took no time. */
function waits(schedule: RetrySchedule): number[] {
  const all: number[] = []
  for (let age = 0; ; age += all.at(-1) ?? 0) {
    const wait = schedule(all.length + 1, age)
    if (wait === undefined) return all
    all.push(wait)
  }
}

test("a relay is asked after 1, 5, 15, 30 minutes, 1, 2, 4, 8 hours and every 8 hours to 48", () => {
  const minutes = waits(smtpSchedule(48 * HOUR, () => 0.5)).map((seconds) => seconds / 60)
  expect(minutes).toEqual([1, 5, 15, 30, 60, 120, 240, 480, 480, 480, 480, 480])
})

test("each wait is up to a tenth shorter or longer", () => {
  expect(smtpSchedule(48 * HOUR, () => 0)(1, 0)).toBeCloseTo(54)
  expect(smtpSchedule(48 * HOUR, () => 1)(1, 0)).toBeCloseTo(66)
})

test("no attempt begins after the greatest age", () => {
  const schedule = smtpSchedule(120, () => 0.5)
  expect(schedule(1, 60)).toBe(60)
  expect(schedule(1, 61)).toBeUndefined()
})

test("the embedded mailbox is asked after 1, 2 and 4 seconds", () => {
  expect(waits(mailboxSchedule)).toEqual([1, 2, 4])
})
