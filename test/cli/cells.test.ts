import { expect, test } from "bun:test"
import {
  bar,
  fitted,
  head,
  rightAligned,
  sparkline,
  widthOf,
  withoutLast,
  wrapped,
} from "../../cli/lib/cells"

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

test("a line with colours is as wide as without, and a break ends the colour and takes it up again", () => {
  const red = "\u001b[31mone two\u001b[0m three"
  expect([widthOf(red), widthOf(fitted(red, 20)), widthOf(fitted(red, 5))]).toEqual([13, 20, 5])
  const lines = wrapped(red, 5)
  expect(lines.map(Bun.stripANSI)).toEqual(["one", "two", "three"])
  expect(lines[1]).toBe("\u001b[31mtwo\u001b[0m")
  expect(lines[2]).toBe("three")
})

test("a sparkline is as high as its highest, and a bar is full at its end", () => {
  expect(sparkline([0, 4, 8])).toBe("▁▅█")
  expect(sparkline([0, 0])).toBe("▁▁")
  expect(bar(0.7, 10)).toBe("▓▓▓▓▓▓▓░░░")
  expect(bar(1.2, 10)).toBe("▓▓▓▓▓▓▓▓▓▓")
})
