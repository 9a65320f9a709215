import { expect, test } from "bun:test"
import { hashOf, lookupOf, newKeyText, visibleParts } from "../../src/identity/authenticate"

const key = newKeyText()

test("a key has a prefix, 57 characters, and a part that finds it", () => {
  expect(key).toMatch(/^svc_live_[0-9A-Za-z]{57}$/)
  expect(lookupOf(key)).toBe(key.slice(9, 17))
  expect(visibleParts(key)).toEqual({ prefix: key.slice(0, 17), last4: key.slice(-4) })
})

test("keys differ, in what finds them and in what proves them", () => {
  const keys = Array.from({ length: 1_000 }, newKeyText)
  expect(new Set(keys.map(lookupOf)).size).toBe(1_000)
  expect(new Set(keys.map((one) => one.slice(17, 60))).size).toBe(1_000)
  expect(new Set(keys.map(hashOf)).size).toBe(1_000)
})

test("a slip of the pen is seen without asking the database", () => {
  for (let at = 0; at < key.length; at++) {
    const changed = key.slice(0, at) + (key[at] === "x" ? "y" : "x") + key.slice(at + 1)
    expect(lookupOf(changed)).toBeUndefined()
    expect(lookupOf(key.slice(0, at) + key.slice(at + 1))).toBeUndefined()
  }
  for (const other of ["", ` ${key}`, `${key} `, `${key}\n`, key.toUpperCase(), key.slice(9)]) {
    expect(lookupOf(other)).toBeUndefined()
  }
})
