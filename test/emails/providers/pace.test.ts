import { expect, test } from "bun:test"
import { Pace } from "../../../src/emails/providers/pace"
import { Waiting } from "../../../src/messages/channel"

/** A clock in milliseconds, and a pace that reads it. */
function pace(per_second: number) {
  const clock = { now: 0 }
  const own = new Pace(per_second, () => clock.now)
  const take = (): number => {
    try {
      own.take()
      return 0
    } catch (error) {
      if (!(error instanceof Waiting)) throw error
      return error.seconds ?? Number.NaN
    }
  }
  return { clock, take }
}

test("a second's worth goes at once, the others get a turn each", () => {
  const { take } = pace(2)
  expect([1, 2, 3, 4, 5].map(take)).toEqual([0, 0, 0.5, 1, 1.5])
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

test("nobody is sent away for longer than a minute", () => {
  const { take } = pace(1)
  const turns = Array.from({ length: 500 }, take)
  expect(Math.max(...turns)).toBeLessThanOrEqual(60)
})
