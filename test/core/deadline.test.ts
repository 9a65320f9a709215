import { expect, test } from "bun:test"
import { deadline } from "../../src/core/deadline"
import { monotonic } from "../../src/core/time"

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
