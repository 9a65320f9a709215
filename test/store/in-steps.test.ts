import { expect, test } from "bun:test"
import { monotonic } from "../../src/core/time"
import { inSteps, rest } from "../../src/store/in-steps"

test("a step is repeated until nothing is left for it", async () => {
  const left = [3, 2, 1, 0, 9]
  let calls = 0
  await inSteps(async () => left[calls++] ?? 0, undefined)
  expect(calls).toBe(4)
})

test("no step begins after the signal, and no rest goes on", async () => {
  const end = new AbortController()
  let calls = 0
  await inSteps(async () => {
    calls += 1
    end.abort()
    return 1
  }, end.signal)
  expect(calls).toBe(1)
  await rest(monotonic() - 60_000, end.signal)
})

test("what took long rests for long, but not for ever", async () => {
  const begun_at = monotonic()
  await rest(begun_at - 100)
  const rested = monotonic() - begun_at
  expect(rested).toBeGreaterThanOrEqual(99)
})
