import { expect, test } from "bun:test"
import { countCharacters, isLonger } from "../../src/lib/text"

test.each([
  ["", 0],
  ["abc", 3],
  ["🔔🔔", 2],
  ["e\u0301", 2],
])("%j has %d characters", (text, count) => {
  expect(countCharacters(text)).toBe(count)
})

test("a bound counts characters, whatever their size in memory", () => {
  expect(isLonger("🔔".repeat(998), 998)).toBe(false)
  expect(isLonger("🔔".repeat(999), 998)).toBe(true)
  expect(isLonger("a".repeat(999), 998)).toBe(true)
})
