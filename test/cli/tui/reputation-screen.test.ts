import { expect, test } from "bun:test"
import { screenLines as linesOf } from "../../../cli/tui/monitor"
import { press } from "../../../cli/tui/press"
import { applyNews } from "../../../cli/tui/store"
import { monitorWith, troubled } from "./rows"

const open = (found = troubled(), columns = 110, lines = 24) => {
  const screen = press(monitorWith(1, columns, lines), "5").state
  return applyNews(screen, { is: "page", screen: "reputation", found }).state
}

const drawn = (state: ReturnType<typeof open>) =>
  linesOf(state, false).map((line) => line.replace(/^│ | +│$/g, ""))

test("rates stand beside their thresholds, with a bar, a forecast and what is held", () => {
  const lines = drawn(open())
  const text = lines.join("\n")
  expect(text).toContain("[5 Reputation]")
  expect(text).toMatch(/status +throttled\n/)
  expect(text).toMatch(/reason +bounce_rate=6.1%;threshold=5%/)
  expect(text).toMatch(/rejected +39.3 % of new sends/)
  expect(text).toContain("4,200 in 7 days, 120 this hour")
  expect(text).toContain("▓▓▓▓▓▓▓▓▓▓▓▓░░░░░░░░ 6.1 % (throttled at 5 %, frozen at 10 %)")
  expect(text).toContain("▓▓░░░░░░░░░░░░░░░░░░ 0.04 % (throttled at 0.1 %, frozen at 0.5 %)")
  expect(text).toContain("Belfry freezes the account after 182 more bounces or 19 more complaints")
  expect(text).toMatch(/tag 漢字 news +0.8 % +.+ +120/)
  expect(text).toMatch(/例え.test +400 +20 \(6.1 %\) +1 \(0.04 %\)/)
})

test("the minimum volume stands below the rates, and on top while fewer are sent", () => {
  const minimum = "Belfry acts on rates from 200 sent (throttled) and 500 sent (frozen)"
  const enough = drawn(open()).join("\n")
  expect(enough).toContain(minimum)
  expect(enough).not.toContain("below the minimum")
  expect(drawn(open(troubled({ sent: 12 }))).join("\n")).toContain(
    "12 sent, below the minimum of 200",
  )
})

test("a forecast names the next status and its time, and a freeze the person that lifts it", () => {
  const expected_at = new Date(Date.now() + 5 * 3_600_000 + 1000).toISOString()
  const forecast = { ...troubled().forecast, status: "frozen" as const, expected_at }
  expect(drawn(open(troubled({ forecast }))).join("\n")).toContain("frozen in 5 h")
  const text = drawn(open(troubled({ status: "frozen" }))).join("\n")
  expect(text).toContain("only the operator can lift the freeze")
})

test("the screen scrolls to its last line, and not past it", () => {
  let state = open(troubled(), 80, 12)
  for (let n = 0; n < 50; n++) state = press(state, "j").state
  expect(drawn(state).join("\n")).toContain("漢字 news")
  expect(state.pages.reputation.top).toBeLessThan(20)
  for (let n = 0; n < 50; n++) state = press(state, "k").state
  expect(state.pages.reputation.top).toBe(0)
})

test("a key without the scope is told which one it needs", () => {
  const problem = "this needs a key with the scope usage:read"
  const state = applyNews(press(monitorWith(1), "5").state, {
    is: "problem",
    screen: "reputation",
    problem,
  }).state
  expect(drawn(state).join("\n")).toContain(problem)
})
