import { describe, expect, test } from "bun:test"
import { RunningAttempts } from "../../src/webhooks/running-attempts"

describe("an attempt that failed", () => {
  test("is outdone by a success that began later, and by no other", () => {
    const attempts = new RunningAttempts()
    const [first, second, third] = [1, 2, 3].map(() => attempts.begin("one"))
    const elsewhere = attempts.begin("other")
    second?.succeeded()
    elsewhere.succeeded()
    expect(first?.isOutdone()).toBe(true)
    expect(second?.isOutdone()).toBe(false)
    expect(third?.isOutdone()).toBe(false)
  })

  test("is not outdone by a success from before it began", () => {
    const attempts = new RunningAttempts()
    const before = attempts.begin("one")
    before.succeeded()
    before.end()
    expect(attempts.begin("one").isOutdone()).toBe(false)
  })
})

test("the concurrency of an endpoint is freed once, by the success or at the end", () => {
  const attempts = new RunningAttempts()
  const one = attempts.begin("one")
  expect(attempts.busy.get("one")).toBe(1)
  one.free()
  expect(attempts.busy.get("one")).toBeUndefined()
  const other = attempts.begin("one")
  one.end()
  one.end()
  expect(attempts.busy.get("one")).toBe(1)
  other.end()
  expect(attempts.busy.get("one")).toBeUndefined()
})
