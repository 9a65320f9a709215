import { expect, test } from "bun:test"
import { eventData } from "../../src/lib/server-sent-events"
import { inPieces } from "../harness/pieces"
import fc from "../harness/properties"

const read = (bytes: Uint8Array, cuts: number[] = []) =>
  Array.fromAsync(eventData(inPieces(bytes, cuts)))
const bytesOf = (text: string) => new TextEncoder().encode(text)

test.each([
  ["a name and data", "event: token\ndata: {}\n\n", ["{}"]],
  ["no space", "data:a\n\n", ["a"]],
  ["several lines of data", "data: a\ndata:  b\ndata\n\n", ["a\n b\n"]],
  ["other fields", ": c\nid: 1\nretry: 5\ndatabase: y\ndata: a\u2028b\n\n", ["a\u2028b"]],
  ["a name alone", "event: x\n\ndata: a\n\n", ["a"]],
  ["a byte order mark", "\uFEFFdata: a\n\n", ["a"]],
  ["every end of line", "data: a\r\rdata: b\r\n\r\ndata: c\n\n", ["a", "b", "c"]],
  ["an event that is cut", "data: a\n\ndata: b\n", ["a"]],
])("%s", async (_, text, events) => {
  expect(await read(bytesOf(text))).toEqual(events)
})

const LINES = ["data: é", "data: 🙂x", "event: n", ": c", "data", "", "", ""]

test("the pieces in which the bytes come make no difference", async () => {
  const line = fc.tuple(fc.constantFrom(...LINES), fc.constantFrom("\r", "\n", "\r\n"))
  const cuts = fc.array(fc.nat(200), { maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 20 }), cuts, async (lines, places) => {
      const bytes = bytesOf(lines.flat().join(""))
      expect(await read(bytes, places)).toEqual(await read(bytes))
    }),
    { numRuns: 300 },
  )
})

test.each([
  ["one line", "x"],
  ["lines of data", "data: x\n"],
])("an event of endless %s is refused", async (_, text) => {
  async function* endless() {
    for (;;) yield bytesOf(text.repeat(1000))
  }
  expect(eventData(endless()).next()).rejects.toBeInstanceOf(RangeError)
})
