import { expect, spyOn, test } from "bun:test"
import { openStore } from "../../../cli/tui/store"
import { monitorWith } from "./rows"

test("a clock that moves on between two looks makes no wait negative: the runtime would complain", () => {
  let now = 1_000_000
  const clock = spyOn(Date, "now").mockImplementation(() => now++)
  const timers = spyOn(globalThis, "setTimeout")
  const store = openStore(monitorWith(3), () => {})
  try {
    store.press("j")
    store.facts([])
    const waits = timers.mock.calls.map(([, wait]) => wait ?? 0)
    expect(waits.length).toBeGreaterThan(0)
    expect(waits.filter((wait) => wait < 0)).toEqual([])
  } finally {
    store.close()
    clock.mockRestore()
    timers.mockRestore()
  }
})
