import { expect, test } from "bun:test"
import { dotStuffed } from "../../src/lib/mail-text"
import { countReceived, MailCollector, MailMemory } from "../../src/smtp/mail-data"
import fc from "../harness/properties"

const MEMORY = 1_000_000
const collector = (most = 100_000) => new MailCollector(most, new MailMemory(MEMORY))

/** Feeds the bytes in pieces of these sizes, over and over. */
function inPieces<T>(bytes: Buffer, sizes: number[], feed: (piece: Buffer) => T | undefined) {
  let from = 0
  for (let turn = 0; from < bytes.length; turn += 1) {
    const to = from + (sizes[turn % sizes.length] ?? 1)
    const answer = feed(bytes.subarray(from, to))
    if (answer !== undefined) return { answer, left: bytes.subarray(to) }
    from = to
  }
  return undefined
}

const pieces = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 })
const line = fc.oneof(
  fc.constantFrom("", ".", "..", ".a", "...", "a."),
  fc.string({ maxLength: 20 }).map((text) => text.replace(/[\r\n\0]/g, "-")),
)
const message = fc
  .array(line, { maxLength: 12 })
  .map((lines) => lines.map((one) => `${one}\r\n`).join(""))

test("a message comes out as it went in, however the network cuts it", async () => {
  await fc.assert(
    fc.asyncProperty(message, pieces, async (text, sizes) => {
      const raw = Buffer.from(text)
      const sent = Buffer.concat([dotStuffed(raw), Buffer.from("QUIT\r\n")])
      const mail = collector()
      const end = inPieces(sent, sizes, (piece) => mail.feed(piece))
      const rest = Buffer.concat([end?.answer ?? Buffer.alloc(0), end?.left ?? Buffer.alloc(0)])
      expect(rest.toString()).toBe("QUIT\r\n")
      expect(Buffer.from(await mail.raw()).toString()).toBe(text)
      expect(mail.size).toBe(raw.length)
    }),
    { seed: 22, numRuns: 2000 },
  )
})

test("a large message is kept in blocks that are not copied again, and comes out whole", async () => {
  const memory = new MailMemory(10_000_000)
  const mail = new MailCollector(5_000_000, memory)
  const text = Buffer.from(Array.from({ length: 300_000 }, (_, at) => `line ${at}\r\n`).join(""))
  inPieces(text, [60_000, 1, 7, 30_001], (piece) => mail.feed(piece))
  expect(mail.feed(Buffer.from(".\r\n"))?.length).toBe(0)
  expect(memory.used).toBeLessThan(text.length + 600_000)
  expect(Buffer.from(await mail.raw()).equals(text)).toBe(true)
  mail.release()
  expect(memory.used).toBe(0)
})

test("a message over the limit is not kept, but its end is found", () => {
  const memory = new MailMemory(MEMORY)
  const mail = new MailCollector(10, memory)
  expect(mail.feed(Buffer.from("12345678\r\n"))).toBeUndefined()
  expect(mail.state).toBe("kept")
  expect(mail.feed(Buffer.from("9\r\n.\r\nNOOP\r\n"))?.toString()).toBe("NOOP\r\n")
  expect(mail).toMatchObject({ state: "too_large", size: 13 })
  expect(memory.used).toBe(0)
})

test("messages share the memory, and give it back", () => {
  const memory = new MailMemory(40_000)
  const first = new MailCollector(100_000, memory)
  const second = new MailCollector(100_000, memory)
  first.feed(Buffer.alloc(20_000, "a"))
  second.feed(Buffer.alloc(30_000, "a"))
  expect([first.state, second.state]).toEqual(["kept", "no_memory"])
  first.release()
  first.release()
  second.release()
  expect(memory.used).toBe(0)
  expect(memory.hasRoom(40_000)).toBe(true)
})

test("only Received fields of the header count", () => {
  const head =
    "Received: from a\r\n by b\r\nRECEIVED : x\r\nX-Received: no\r\nSubject: Received: no\r\n"
  expect(countReceived(Buffer.from(`${head}\r\nReceived: in the body\r\n`))).toBe(2)
})

test("in a header without end only its beginning counts", () => {
  const long = Buffer.alloc(20_000_000, "Received: from a\r\n")
  expect(countReceived(long)).toBeLessThan(20_000)
  expect(countReceived(long)).toBeGreaterThan(20)
})
