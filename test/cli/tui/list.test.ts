import { expect, test } from "bun:test"
import { followed, kept, moved, scrolled } from "../../../cli/tui/lists"
import { TOP_OF_LIST } from "../../../cli/tui/state"

const items = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `m${from - n}` }))

const ROWS = 5

test("who follows stays with the newest", () => {
  const place = followed(items(10, 10), ROWS)
  expect(place).toEqual({ selected: "m10", top: 0, follows: true })
  expect(kept(place, items(10, 10), items(13, 13), ROWS).selected).toBe("m13")
})

test("who reads stays with his row, at the same height, though newer ones come", () => {
  const before = items(100, 100)
  const place = moved(moved(followed(before, ROWS), before, 20, ROWS), before, -2, ROWS)
  expect(place).toEqual({ selected: "m82", top: 16, follows: false })
  expect(kept(place, before, items(140, 140), ROWS)).toEqual({ ...place, top: 56 })
})

test("a row that is gone is followed by the one in its place", () => {
  const before = items(10, 10)
  const place = moved(followed(before, ROWS), before, 3, ROWS)
  const after = before.filter(({ id }) => id !== "m7")
  expect(kept(place, before, after, ROWS).selected).toBe("m6")
  expect(kept(place, before, [], ROWS).selected).toBeNull()
})

test("moving stops at both ends", () => {
  const all = items(10, 10)
  const end = moved(TOP_OF_LIST, all, Number.MAX_SAFE_INTEGER, ROWS)
  expect([end.selected, end.top]).toEqual(["m1", 5])
  const begin = moved(end, all, Number.MIN_SAFE_INTEGER, ROWS)
  expect([begin.selected, begin.top]).toEqual(["m10", 0])
  expect(moved(TOP_OF_LIST, [], 1, ROWS).selected).toBeNull()
})

test("text is scrolled no further than its last line", () => {
  expect(scrolled(0, 100, 12, 5)).toBe(7)
  expect(scrolled(3, -9, 12, 5)).toBe(0)
  expect(scrolled(0, 1, 3, 5)).toBe(0)
})
