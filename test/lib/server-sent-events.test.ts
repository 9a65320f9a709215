import { expect, test } from "bun:test"
import { eventsOf } from "../../src/lib/server-sent-events"
import { inPieces } from "../harness/pieces"
import fc from "../harness/properties"

const read = (bytes: Uint8Array, cuts: number[] = []) =>
  Array.fromAsync(eventsOf(inPieces(bytes, cuts)))
const bytesOf = (text: string) => new TextEncoder().encode(text)

test.each([
  ["a name and data", "event: token\ndata: {}\n\n", [{ event: "token", data: "{}" }]],
  ["no name", "data:a\n\n", [{ event: "message", data: "a" }]],
  ["several lines of data", "data: a\ndata:  b\ndata\n\n", [{ event: "message", data: "a\n b\n" }]],
  [
    "comments, ids, times and other fields",
    ": c\nid: 1\nretry: 5\nx: y\ndata: a\n\n",
    [{ event: "message", data: "a" }],
  ],
  [
    "a name alone, which is forgotten",
    "event: x\n\ndata: a\n\n",
    [{ event: "message", data: "a" }],
  ],
  ["a byte order mark", "\uFEFFdata: a\n\n", [{ event: "message", data: "a" }]],
  [
    "every end of line",
    "data: a\r\rdata: b\r\n\r\ndata: c\n\n",
    ["a", "b", "c"].map((data) => ({ event: "message", data })),
  ],
  ["an event that is cut", "data: a\n\ndata: b\n", [{ event: "message", data: "a" }]],
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
  expect(eventsOf(endless()).next()).rejects.toBeInstanceOf(RangeError)
})
