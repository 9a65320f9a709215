import { describe, expect, test } from "bun:test"
import { millis } from "../../../src/core/time"
import {
  ConcurrencyLimit,
  isDenied,
  PerDestinationLimits,
  type Permit,
  type PermitDenial,
  type PermitRequest,
} from "../../../src/emails/smtp/destination-limits"
import { movableClock } from "../../harness/clock"

const clock = movableClock()
const SLOW_DOWN = { slow_down: "421 4.7.0 too much" }

const limitsOf = ({ per_domain, concurrency }: { per_domain: number; concurrency: number }) =>
  new PerDestinationLimits({
    per_destination: per_domain,
    concurrency: new ConcurrencyLimit(concurrency),
  })

/** As many as are let in now. */
function fill(limits: PerDestinationLimits, domain: string, request: PermitRequest = {}): Permit[] {
  const permits: Permit[] = []
  for (;;) {
    const answer = limits.tryAcquire(domain, request)
    if (isDenied(answer)) return permits
    answer.began = millis()
    permits.push(answer)
  }
}

function refused(limits: PerDestinationLimits, domain: string): PermitDenial {
  const answer = limits.tryAcquire(domain)
  if (!isDenied(answer)) throw new Error("there was a permit")
  return answer
}

const secondsOf = ({ until }: PermitDenial) => (Date.parse(until) - millis()) / 1000

describe("a domain", () => {
  test("begins with two at a time, and has its five after three successes", () => {
    const limits = limitsOf({ per_domain: 5, concurrency: 20 })
    const first = fill(limits, "b.test")
    expect(first).toHaveLength(2)
    for (const permit of first) limits.release(permit, "fine")
    expect(fill(limits, "b.test")).toHaveLength(4)
    expect(fill(limits, "c.test")).toHaveLength(2) // each has its own
  })

  test("gives who finds no permit a time of his own, and says why", () => {
    const limits = limitsOf({ per_domain: 2, concurrency: 20 })
    fill(limits, "b.test")
    const times = Array.from({ length: 50 }, () => refused(limits, "b.test").until)
    expect(new Set(times).size).toBe(50)
    expect(times.toSorted()).toEqual(times)
    expect(refused(limits, "b.test").reason).toContain("2 messages at a time")
  })

  test("with a million waiting costs no memory, and nobody is sent further than ten minutes", () => {
    const limits = limitsOf({ per_domain: 5, concurrency: 20 })
    fill(limits, "b.test")
    for (let n = 0; n < 1_000_000; n++) limits.tryAcquire("b.test")
    expect(secondsOf(refused(limits, "b.test"))).toBeLessThanOrEqual(600)
  })

  test("that asks for less is left alone, then given one at a time, and earns the rest back", () => {
    const limits = limitsOf({ per_domain: 5, concurrency: 20 })
    for (const permit of fill(limits, "b.test")) limits.release(permit, "fine")
    const permits = fill(limits, "b.test")
    for (const permit of permits) limits.release(permit, SLOW_DOWN) // four at once are one sign
    const hold = refused(limits, "b.test")
    expect(hold.reason).toContain("421 4.7.0 too much")
    expect(secondsOf(hold)).toBeGreaterThan(25)
    expect(secondsOf(hold)).toBeLessThan(40)

    clock.advance({ seconds: 31 })
    expect(fill(limits, "b.test")).toHaveLength(2)
  })

  test("that goes on asking for less waits twice as long each time, a quarter of an hour at most", () => {
    const limits = limitsOf({ per_domain: 5, concurrency: 20 })
    const pauses: number[] = []
    for (let n = 0; n < 8; n++) {
      const [permit, ...others] = fill(limits, "b.test")
      if (!permit) throw new Error("no permit")
      for (const other of others) limits.release(other, "nothing")
      clock.advance({ seconds: 1 })
      limits.release(permit, SLOW_DOWN)
      const seconds = Math.round(secondsOf(refused(limits, "b.test")))
      pauses.push(seconds)
      clock.advance({ seconds: seconds + 1 })
    }
    expect(pauses).toEqual([30, 60, 120, 240, 480, 900, 900, 900])
    const once = fill(limits, "b.test")
    expect(once).toHaveLength(1)
    for (let n = 0; n < 10; n++) {
      for (const permit of n === 0 ? once : fill(limits, "b.test")) limits.release(permit, "fine")
    }
    expect(fill(limits, "b.test")).toHaveLength(2)
  })

  test("that is slow shares half of all permits with the others that are", () => {
    const limits = limitsOf({ per_domain: 5, concurrency: 8 })
    for (const name of ["a.test", "b.test", "c.test", "quick.test"]) {
      for (const permit of fill(limits, name)) limits.release(permit, "fine")
    }
    const slow = ["a.test", "b.test", "c.test"].flatMap((name) => fill(limits, name))
    clock.advance({ seconds: 2 })
    expect(slow).toHaveLength(12) // all at once: nobody knew
    for (const permit of [slow[0], slow[4], slow[8]]) if (permit) limits.release(permit, "nothing")
    for (const name of ["a.test", "b.test", "c.test"]) {
      const { reason } = refused(limits, name)
      expect(reason).toBe(
        `${name} is slow. Slow and new servers may use only a part of the delivery slots`,
      )
    }
    expect(fill(limits, "quick.test")).toHaveLength(4)
  })

  test("that has taken nothing yet counts as slow, however many of its kind there are", () => {
    const limits = limitsOf({ per_domain: 5, concurrency: 20 })
    for (const permit of fill(limits, "quick.test")) limits.release(permit, "fine")
    const names = Array.from({ length: 12 }, (_, n) => `new${n}.test`)
    const taken = names.flatMap((name) => fill(limits, name))
    expect(taken).toHaveLength(10)
    expect(refused(limits, "new11.test").reason).toContain("new11.test has accepted no message yet")
    expect(fill(limits, "quick.test")).toHaveLength(4)
  })

  test("that is new has room for one project when those of another take their half", () => {
    const limits = limitsOf({ per_domain: 5, concurrency: 20 })
    const theirs = Array.from({ length: 20 }, (_, n) =>
      fill(limits, `theirs${n}.test`, { project_id: "project_1", is_urgent: n > 10 }),
    )
    expect(theirs.flat()).toHaveLength(15) // urgent mail may go further
    for (const permit of theirs.flat().slice(10)) limits.release(permit, "nothing")
    expect(fill(limits, "theirs.test", { project_id: "project_1" })).toEqual([])
    expect(fill(limits, "ours.test", { project_id: "project_2" })).toHaveLength(2)
  })

  test("that is new waits in line for another that is new, and not for one that hangs", async () => {
    const limits = limitsOf({ per_domain: 5, concurrency: 4 })
    const [first, second] = fill(limits, "a.test")
    if (!first || !second) throw new Error("no permit")
    const waiting = limits.acquire("b.test")
    limits.release(first, "nothing")
    expect(isDenied(await waiting)).toBe(false)
    clock.advance({ seconds: 2 })
    const away = await limits.acquire("c.test")
    expect(isDenied(away) && away.reason).toContain("c.test has accepted no message yet")
  })

  test("lets urgent mail in beside the rest, but not through a pause", () => {
    const limits = limitsOf({ per_domain: 5, concurrency: 20 })
    const permits = fill(limits, "b.test")
    expect(fill(limits, "b.test", { is_urgent: true })).toHaveLength(2)
    for (const permit of permits) limits.release(permit, SLOW_DOWN)
    expect(fill(limits, "b.test", { is_urgent: true })).toEqual([])
  })
})

test("a hundred thousand domains are not all remembered", () => {
  const limits = limitsOf({ per_domain: 5, concurrency: 20 })
  for (let n = 0; n < 100_000; n++) {
    for (const permit of fill(limits, `${n}.test`)) limits.release(permit, "fine")
  }
  expect(limits.size).toBeLessThanOrEqual(10_000)
})
