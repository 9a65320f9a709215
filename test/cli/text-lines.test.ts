import { expect, test } from "bun:test"
import { LONGEST_RECORD, linesIn } from "../../cli/lib/csv"

const read = (text: string, length: number) => Array.fromAsync(linesIn(piecesOf(text, length)))

async function* piecesOf(text: string, length: number) {
  for (let at = 0; at < text.length; at += length) yield text.slice(at, at + length)
}

test("lines are read in pieces of any length, each with its number and its end", async () => {
  for (const length of [1, 2, 5, 1000]) {
    expect(await read("one\n\nthree\r\n\rfive", length)).toEqual([
      { line: 1, text: "one", end: "\n" },
      { line: 2, text: "", end: "\n" },
      { line: 3, text: "three", end: "\r\n" },
      { line: 4, text: "", end: "\r" },
      { line: 5, text: "five", end: "" },
    ])
  }
  expect(await read("", 1)).toEqual([])
  expect(await read("one\n", 2)).toHaveLength(1)
})

test("of a line without an end only the first characters are kept, and the next line is whole", async () => {
  const long = "x".repeat(LONGEST_RECORD)
  for (const length of [1000, 65_537, 1_000_000]) {
    const lines = await read(`a\n${long}\n${long}y\n${long.repeat(20)}\nb`, length)
    expect(lines.map(({ line, text }) => [line, text.length])).toEqual([
      [1, 1],
      [2, LONGEST_RECORD],
      [3, LONGEST_RECORD + 1],
      [4, LONGEST_RECORD + 1],
      [5, 1],
    ])
  }
})
