import { expect, test } from "bun:test"
import { csvLine, LONGEST_RECORD, plainCell, recordsIn } from "../../cli/lib/csv"
import { textIn } from "../../cli/lib/decoded-text"
import fc from "../harness/properties"

/** Reads a text in pieces of so many bytes. */
const read = (text: string, length?: number) =>
  Array.fromAsync(recordsIn(textIn(bytesOf(text, length), "text")))

async function* bytesOf(text: string, length = 100_000_000) {
  const bytes = new TextEncoder().encode(text)
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}

const cellsOf = async (text: string, length?: number) =>
  (await read(text, length)).map(({ cells }) => cells)

test.each<[string, string[][]]>([
  [
    "a,b\r\nc,d\r\n",
    [
      ["a", "b"],
      ["c", "d"],
    ],
  ],
  [
    "a,b\nc,d",
    [
      ["a", "b"],
      ["c", "d"],
    ],
  ],
  [
    "\ufeffa;b\nc;d\n",
    [
      ["a", "b"],
      ["c", "d"],
    ],
  ],
  ["a\tb\n", [["a", "b"]]],
  [
    'a;b\rc;"d\re"\r\rf;g',
    [
      ["a", "b"],
      ["c", "d\re"],
      ["f", "g"],
    ],
  ],
  ['"a,b","say ""hi""",""\n', [["a,b", 'say "hi"', ""]]],
  ['"two\r\nlines",x\n', [["two\r\nlines", "x"]]],
  ["a@b.c\n\n\r\nd@e.f", [["a@b.c"], ["d@e.f"]]],
  ["", []],
  ["\n\n", []],
  ['a"b,c\n', [['a"b', "c"]]],
  ["sep=;\r\na,b\r\n", [["a,b"]]],
  ['"SEP=|"\na|b', [["a", "b"]]],
  ["sep=\\t\na,b\tc", [["a,b", "c"]]],
  ["sep=^\na,b^c", [["a,b", "c"]]],
  ["a,x|b|c\n", [["a,x", "b", "c"]]],
  ['"a,b,c,d";e\n', [["a,b,c,d", "e"]]],
  ['"Ann" Example\t"x" \t"y\n\tz"\n', [['"Ann" Example', "x ", "y\n\tz"]]],
  ['a, "b, c" ,d\n', [["a", "b, c ", "d"]]],
])("%j", async (text, cells) => {
  for (const length of [1, 2, 3, 1000]) expect(await cellsOf(text, length)).toEqual(cells)
})

test("each record knows its line", async () => {
  const text = 'a\n"b\nb"\n\nc\n'
  expect((await read(text)).map(({ line }) => line)).toEqual([1, 2, 5])
  expect((await read("a\rb\r\rc\r")).map(({ line }) => line)).toEqual([1, 2, 4])
})

test.each([
  ["is not closed at the end of the text", 'a,b\nc,"d\ne,f\n', 2],
  [
    "is not closed within the longest record",
    `a,b\n"c",d\n"two\nlines\n${"e\n".repeat(LONGEST_RECORD)}`,
    3,
  ],
])("a quote that %s is named by its line", async (_, text, line) => {
  const message = `FILE: the quote that opens in line ${line} is not closed.`
  for (const length of [1, 7, 100_000_000])
    await expect(read(text, length)).rejects.toThrow(message)
})

test("a record that is too long is named by its line, also the first one", async () => {
  const message = (line: number) =>
    `FILE: the record in line ${line} has more than ${LONGEST_RECORD} characters.`
  const long = "x".repeat(LONGEST_RECORD)
  const cells = await cellsOf(`a,b\n${long.slice(4)},c\n`, 1000)
  expect(cells[1]).toEqual([long.slice(4), "c"])
  await expect(read(`a,b\n\n${long},c\n`, 1000)).rejects.toThrow(message(3))
  await expect(read(`a,"${long}`, 1000)).rejects.toThrow("line 1")
  await expect(read(`${long}x`, 1000)).rejects.toThrow(message(1))
})

test("what is written is read as it was, in pieces of any length", async () => {
  const cell = fc.string({ unit: fc.constantFrom(..."ab,;\"'\r\n\t=+-@ü") })
  const row = fc.array(cell, { minLength: 2, maxLength: 4 })
  const head = ["a", "b", "c", "d"] // it has more commas than any other separator
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { maxLength: 5 }),
      fc.integer({ min: 1, max: 40 }),
      async (rows, length) => {
        const text = [head, ...rows].map(csvLine).join("")
        const plain = (await cellsOf(text, length)).map((cells) => cells.map(plainCell))
        expect(plain).toEqual([head, ...rows])
      },
    ),
  )
})
