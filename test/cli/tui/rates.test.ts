import { expect, test } from "bun:test"
import { counted, NO_RATES, perSecond, upTo } from "../../../cli/tui/message-rows"

const counts = (added: number) => ({ added, settled: added, bounced: 0, complained: 0 })

test("the rate is the mean of the last five whole seconds", () => {
  let rates = upTo(NO_RATES, 1_000_000)
  for (let second = 0; second < 6; second++) {
    rates = counted(rates, counts(10), 1_000_000 + second * 1000)
  }
  expect(perSecond(rates)).toBe(10)
  expect(perSecond(upTo(rates, 1_007_500))).toBe(8)
  expect(perSecond(upTo(rates, 1_020_000))).toBe(0)
})

test("no more than the last minute is kept", () => {
  const rates = counted(NO_RATES, counts(1), 1_000_000)
  expect(upTo(rates, 2_000_000).seconds).toHaveLength(60)
  expect(upTo(rates, 2_000_000).settled).toBe(1)
})
