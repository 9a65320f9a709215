import { expect, test } from "bun:test"
import { unlessAborted } from "../../src/core/time"

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
