import { expect, test } from "bun:test"
import { rowsInView, scrollToShow } from "../../src/console/rows-in-view"

const view = { top: 0, height: 400, row_height: 40, count: 10_000 }

test("of ten thousand rows only those in view are shown, and a few around them", () => {
  expect(rowsInView(view)).toEqual({ from: 0, to: 18 })
  expect(rowsInView({ ...view, top: 200_000 })).toEqual({ from: 4992, to: 5018 })
  expect(rowsInView({ ...view, top: 400_000 - 400 })).toEqual({ from: 9982, to: 10_000 })
})

test("a list that became shorter than its place shows its end, or nothing", () => {
  expect(rowsInView({ ...view, top: 200_000, count: 5 })).toEqual({ from: 5, to: 5 })
  expect(rowsInView({ ...view, count: 0 })).toEqual({ from: 0, to: 0 })
})

test("the list scrolls no further than the chosen row needs", () => {
  const shown = { top: 400, height: 400 }
  expect(scrollToShow(12, shown, 40)).toBe(400)
  expect(scrollToShow(9, shown, 40)).toBe(360)
  expect(scrollToShow(20, shown, 40)).toBe(440)
})
