import { expect, test } from "bun:test"
import { short } from "../../src/store/columns"

test("a foreign text that is short stays as it is", () => {
  expect(short("451 4.2.0 later")).toBe("451 4.2.0 later")
  expect(short(null)).toBeNull()
})

test("a foreign text is cut at 1,000 characters, and leaves nothing that a database refuses", () => {
  expect(short("x".repeat(5000))).toHaveLength(1000)
  expect(short("a\0b")).toBe("ab")
  expect(short(`${"x".repeat(999)}🔔`).isWellFormed()).toBe(true)
})
