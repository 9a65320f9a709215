import { expect, test } from "bun:test"
import { countCharacters, isLonger, short } from "../../src/lib/text"

test("keeps what is short as it is", () => {
  expect(short("451 4.2.0 later")).toBe("451 4.2.0 later")
  expect(short(null)).toBeNull()
})

test("cuts at 1,000 characters, and leaves nothing that a database refuses", () => {
  expect(short("x".repeat(5000))).toHaveLength(1000)
  expect(short("a\0b")).toBe("ab")
  expect(short(`${"x".repeat(999)}🔔`).isWellFormed()).toBe(true)
})

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
