import { describe, expect, test } from "bun:test"
import {
  clock,
  deadline,
  isoFrom,
  millis,
  millisFrom,
  monotonic,
  now,
  secondsFromNow,
  sleep,
} from "../../src/core/time"

describe("time", () => {
  test("everything follows the one clock", () => {
    const real = clock.read
    clock.read = () => Date.UTC(2031, 0, 2, 3, 4, 5, 6)
    try {
      expect(now()).toBe("2031-01-02T03:04:05.006Z")
      expect(secondsFromNow(1.5)).toBe("2031-01-02T03:04:06.506Z")
      expect(secondsFromNow(-5)).toBe("2031-01-02T03:04:00.006Z")
      expect(isoFrom(millis())).toBe(now())
      expect(millisFrom(now())).toBe(millis())
    } finally {
      clock.read = real
    }
  })

  test("a sleep ends early, without an error, when its signal is aborted", async () => {
    const stop = new AbortController()
    const asleep = sleep(3_600_000, stop.signal)
    stop.abort()
    expect(await asleep).toBeUndefined()
    expect(await sleep(3_600_000, stop.signal)).toBeUndefined()
    expect(await sleep(1)).toBeUndefined()
  })
})

test("a deadline comes once, not before its time, and not when it was dropped", async () => {
  const begun = monotonic()
  const reached: string[] = []
  const last = Promise.withResolvers<void>()
  let drop = () => {}
  deadline(60, () => {
    reached.push("late")
    last.resolve()
  })
  deadline(1, () => {
    reached.push("early")
    drop()
  })
  drop = deadline(40, () => reached.push("dropped"))
  await Bun.sleep(0)
  Bun.sleepSync(80) // a stall, after which all three are due
  await last.promise
  expect(reached).toEqual(["early", "late"])
  expect(monotonic() - begun).toBeGreaterThanOrEqual(60)
})

test("a deadline may set another one", async () => {
  const second = Promise.withResolvers<string>()
  deadline(1, () => {
    deadline(1, () => second.resolve("came"))
  })
  expect(await second.promise).toBe("came")
})
