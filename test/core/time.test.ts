import { describe, expect, test } from "bun:test"
import {
  clock,
  isoFrom,
  millis,
  millisFrom,
  now,
  secondsFromNow,
  sleep,
  unlessAborted,
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

test("the wait ends with the work, or with the reason of the signal", async () => {
  const stop = new AbortController()
  expect(await unlessAborted(Promise.resolve(1), stop.signal)).toBe(1)
  expect(unlessAborted(Promise.reject(new Error("broken")), stop.signal)).rejects.toThrow("broken")
  const waiting = unlessAborted(new Promise(() => {}), stop.signal)
  stop.abort(new Error("enough"))
  expect(waiting).rejects.toThrow("enough")
  expect(unlessAborted(new Promise(() => {}), stop.signal)).rejects.toThrow("enough")
})

test("a signal that lives on holds nothing of the waits that ended", async () => {
  const { signal } = new AbortController()
  const held = new Set<unknown>()
  const { addEventListener, removeEventListener } = signal
  signal.addEventListener = (...given: Parameters<typeof addEventListener>) => {
    held.add(given[1])
    addEventListener.apply(signal, given)
  }
  signal.removeEventListener = (...given: Parameters<typeof removeEventListener>) => {
    held.delete(given[1])
    removeEventListener.apply(signal, given)
  }
  for (let n = 0; n < 100; n++) await unlessAborted(Promise.resolve(n), signal)
  await unlessAborted(Promise.reject(new Error("broken")), signal).catch(() => undefined)
  expect(held.size).toBe(0)
})
