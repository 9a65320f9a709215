import { expect, test } from "bun:test"
import { DeferredError } from "../../src/jobs/work-item"
import { ProviderRateLimit } from "../../src/providers/open-providers"

/** A clock in milliseconds, and a pace that reads it. */
function pace(per_second: number) {
  const clock = { now: 0 }
  const own = new ProviderRateLimit(per_second, () => clock.now)
  const take = (is_urgent = false): number => {
    try {
      own.take(is_urgent)
      return 0
    } catch (error) {
      if (!(error instanceof DeferredError)) throw error
      return error.seconds ?? Number.NaN
    }
  }
  return { clock, take }
}

test("a second's worth goes at once, the others get a turn each", () => {
  const { take } = pace(2)
  expect([1, 2, 3, 4, 5].map(() => take())).toEqual([0, 0, 0.5, 1, 1.5])
})

test("over ten seconds there are never more than the pace allows, and hardly fewer", () => {
  const { clock, take } = pace(5)
  let taken = 0
  for (; clock.now < 10_000; clock.now += 10) if (take() === 0) taken++
  expect(taken).toBeGreaterThanOrEqual(50)
  expect(taken).toBeLessThanOrEqual(55)
})

test("less than one a second is one now and then", () => {
  const { clock, take } = pace(0.5)
  expect(take()).toBe(0)
  expect(take()).toBe(2)
  clock.now = 2000
  expect(take()).toBe(0)
})

test("nobody is sent away for longer than ten minutes, however slow the pace", () => {
  for (const per_second of [1, 1e-9]) {
    const { take } = pace(per_second)
    const turns = Array.from({ length: 900 }, () => take())
    expect(Math.max(...turns)).toBe(600)
  }
})

test("who is urgent passes those who wait, and over a while there are not more for it", () => {
  const { clock, take } = pace(2)
  expect([1, 2, 3, 4].map(() => take())).toEqual([0, 0, 0.5, 1])
  expect([1, 2, 3].map(() => take(true) === 0)).toEqual([true, true, false])
  clock.now = 1000
  expect(take()).toBeGreaterThan(0) // that second's were borrowed
  clock.now = 2000
  expect([take(), take()]).toEqual([0, 0])
})
