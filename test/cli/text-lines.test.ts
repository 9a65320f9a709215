import { expect, test } from "bun:test"
import { LineReader, LONGEST_RECORD } from "../../cli/lib/csv"

function read(text: string, length: number) {
  const reader = new LineReader()
  const found = []
  for (let at = 0; at < text.length; at += length) {
    found.push(...reader.push(text.slice(at, at + length)))
  }
  return [...found, ...reader.end()]
}

test("lines are read in pieces of any length, each with its number", () => {
  for (const length of [1, 2, 5, 1000]) {
    const lines = read("one\n\nthree\r\nfour", length)
    expect(lines.map(({ line, text }) => [line, text])).toEqual([
      [1, "one"],
      [2, ""],
      [3, "three\r"],
      [4, "four"],
    ])
  }
  expect(read("", 1)).toEqual([])
  expect(read("one\n", 2)).toHaveLength(1)
})

test("of a line without an end only the first characters are kept, and the next line is whole", () => {
  const long = "x".repeat(LONGEST_RECORD)
  for (const length of [1000, 65_537, 1_000_000]) {
    const lines = read(`a\n${long}\n${long}y\n${long.repeat(20)}\nb`, length)
    expect(lines.map(({ line, text, is_too_long }) => [line, text.length, is_too_long])).toEqual([
      [1, 1, false],
      [2, LONGEST_RECORD, false],
      [3, LONGEST_RECORD, true],
      [4, LONGEST_RECORD, true],
      [5, 1, false],
    ])
  }
})
