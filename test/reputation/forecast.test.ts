import { expect, test } from "bun:test"
import type { ReputationCounts } from "../../src/identity/account-reputation"
import { forecast } from "../../src/reputation/reputation-report"
import { HOUR, Walk } from "./walk"

const mail = (sent: number, bounced: number, complained = 0): ReputationCounts => ({
  sent,
  delivered: sent - bounced,
  bounced,
  complained,
})

/** Sends the same every hour, and assesses at its begin. */
function go(walk: Walk, hours: number, counts: ReputationCounts) {
  for (let hour = 0; hour < hours; hour++) {
    walk.at_ms += HOUR
    walk.send(counts)
  }
}

/** What is foretold of a walk now. */
const foretold = (walk: Walk) =>
  forecast(
    {
      ...walk.standing,
      hours: [...walk.hours].map(([hour, counts]) => ({ hour, ...counts })),
      counts: walk.window,
      base: null,
    },
    walk.limits,
    walk.at_ms,
  )

const START = "2026-11-15T12:00:00.000Z"

test("mail that turns bad is foretold to the hour in which it throttles", () => {
  const walk = new Walk(START)
  go(walk, 120, mail(100, 1))
  go(walk, 24, mail(100, 12))
  expect(walk.status).toBe("active")
  const { status, expected_at } = foretold(walk)
  go(walk, 48, mail(100, 12))
  const [change] = walk.changes
  expect([status, expected_at]).toEqual(["throttled", new Date(change?.at_ms ?? 0).toISOString()])
})

test("good mail after bad is foretold to the hour in which the account is active again", () => {
  const walk = new Walk(START)
  go(walk, 60, mail(100, 6))
  go(walk, 24, mail(100, 0))
  expect(walk.status).toBe("throttled")
  const { status, expected_at } = foretold(walk)
  go(walk, 48, mail(100, 0))
  const change = walk.changes.at(-1)
  expect([status, change?.status]).toEqual([change?.status ?? null, "active"])
  expect(expected_at).toBe(new Date(change?.at_ms ?? 0).toISOString())
})

test("steady good mail stays active, and the numbers that are left lead exactly to the next step", () => {
  const walk = new Walk(START)
  go(walk, 48, mail(100, 1))
  const { status, expected_at, bounces_left, complaints_left } = foretold(walk)
  expect([status, expected_at]).toEqual([null, null])
  const [bounces, complaints] = [bounces_left ?? 0, complaints_left ?? 0]
  const after = (counts: Partial<ReputationCounts>) => {
    const other = new Walk(START)
    go(other, 48, mail(100, 1))
    return other.send(counts).status
  }
  expect(after({ sent: bounces - 1, bounced: bounces - 1 })).toBe("active")
  expect(after({ sent: bounces, bounced: bounces })).toBe("throttled")
  expect(after({ complained: complaints - 1 })).toBe("active")
  expect(after({ complained: complaints })).toBe("throttled")
})

test("a frozen account has no next step, and one without mail needs the least number of it", () => {
  const frozen = new Walk(START)
  frozen.send(mail(500, 50))
  expect(foretold(frozen)).toMatchObject({
    status: null,
    bounces_left: null,
    complaints_left: null,
  })
  expect(foretold(new Walk(START))).toMatchObject({ status: null, bounces_left: 200 })
})
