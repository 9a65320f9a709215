import { expect, test } from "bun:test"
import {
  fitted,
  head,
  meter,
  rightAligned,
  sparkline,
  widthOf,
  withoutLast,
  wrapped,
} from "../../../cli/tui/cells"

const samples = ["", "hello", "漢字かな", "a漢b字", "🎉 party 🎉", "👩‍👩‍👧 family", "é́", "ﬀ…"]

test("what is fitted takes exactly its width, also where characters are wide", () => {
  for (const text of samples) {
    for (let width = 1; width < 14; width++) {
      expect([text, width, widthOf(fitted(text, width))]).toEqual([text, width, width])
      expect([text, width, widthOf(rightAligned(text, width))]).toEqual([text, width, width])
    }
  }
  expect(fitted("漢字", 3)).toBe("漢…")
  expect(fitted("漢字", 2)).toBe("… ")
  expect(fitted("x", 0)).toBe("")
})

test("no character is cut in two", () => {
  expect(head("👩‍👩‍👧x", 1)).toBe("")
  expect(head("👩‍👩‍👧x", 2)).toBe("👩‍👩‍👧")
  expect(withoutLast("ab🎉")).toBe("ab")
  expect(withoutLast("")).toBe("")
})

test("long lines break between words where they can, and lose nothing", () => {
  expect(wrapped("one two three", 8)).toEqual(["one two", "three"])
  expect(wrapped("abcdefghij", 4)).toEqual(["abcd", "efgh", "ij"])
  expect(wrapped("漢字漢字", 5)).toEqual(["漢字", "漢字"])
  expect(wrapped("a\n\nb", 5)).toEqual(["a", "", "b"])
  expect(wrapped("漢", 1)).toEqual(["漢"])
})

test("a sparkline is as high as its highest, and a meter says its number too", () => {
  expect(sparkline([0, 4, 8])).toBe("▁▅█")
  expect(sparkline([0, 0])).toBe("▁▁")
  expect(meter(7, 10)).toBe("▓▓▓▓▓▓▓░░░ 7/10")
  expect(meter(12, 10)).toBe("▓▓▓▓▓▓▓▓▓▓ 12/10")
})
