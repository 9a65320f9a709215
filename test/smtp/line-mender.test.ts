import { expect, test } from "bun:test"
import { LineMender } from "../../src/smtp/line-mender"
import fc from "../harness/properties"

/** What comes out, or the fault, where the network cuts the text into pieces of this size. */
function mended(text: string, size: number, of: "programs" | "servers" = "servers"): string {
  const mender = new LineMender(of)
  let out = ""
  for (let at = 0; at < text.length; at += size) {
    const piece = mender.feed(Buffer.from(text.slice(at, at + size), "latin1"))
    if (typeof piece === "string") return piece
    out += piece.toString("latin1")
  }
  return out
}

test("lines end in CRLF, and no dot becomes the end of a message", () => {
  const long = "a".repeat(10_000)
  for (const [given, expected] of [
    ["a\r\nb\r\n", "a\r\nb\r\n"],
    ["a\nb\n\nc\r\n", "a\r\nb\r\n\r\nc\r\n"],
    ["a\r\r\nb\r\n", "a\r\nb\r\n"],
    ["a\rb\r\rc\r\n", "a b  c\r\n"],
    ["a\r\n.\r\n", "a\r\n.\r\n"],
    ["a\n.\nb\r\n", "a\r\n..\r\nb\r\n"],
    ["a\n.\r\nb", "a\r\n..\r\nb"],
    ["a\r\n.\nb", "a\r\n..\r\nb"],
    ["a\r\r\n.\r\n", "a\r\n..\r\n"],
    ["a\r\n.\r\r\n.\r\n", "a\r\n..\r\n..\r\n"],
    ["a\n..\n.b\n", "a\r\n..\r\n.b\r\n"],
    ["a\r\n\r.\r\n", "a\r\n .\r\n"],
    [`${long}\r\n${long}\n`, `${long}\r\n${long}\r\n`],
    [`${long}a\r\n`, "a line over 10,000 bytes"],
    ["\r".repeat(10_001), "a line over 10,000 bytes"],
    ["a\0b\r\n", "a NUL"],
  ] as const)
    for (const size of [1, 2, 3, 7, 50_000]) {
      expect([given.slice(0, 20), mended(given, size)]).toEqual([given.slice(0, 20), expected])
    }
})

test("a program that submits may not send a bare CR or LF, but text files of mail programs pass", () => {
  const long = "a".repeat(2048)
  for (const [given, expected] of [
    ["a\r\nb\r\n", "a\r\nb\r\n"],
    ["\r\n\r\n.\r\n", "\r\n\r\n.\r\n"],
    ["a\r\r\nb\r\r\n..\r\r\n", "a\r\nb\r\n..\r\n"],
    ["a\nb\r\n", "a bare CR or LF"],
    ["\n", "a bare CR or LF"],
    ["a\r\n\n", "a bare CR or LF"],
    ["a\rb\r\n", "a bare CR or LF"],
    ["a\r\n.\r.\r\n", "a bare CR or LF"],
    ["a\r\r\n.\r\n", "a bare CR or LF"],
    ["a\r\n.\r\r\n", "a bare CR or LF"],
    ["a\0\r\n", "a NUL"],
    [`${long}\r\n`, `${long}\r\n`],
    [`${long}a\r\n`, "a line over 2,048 bytes"],
    [`${long}a`, "a line over 2,048 bytes"],
  ] as const)
    for (const size of [1, 2, 3, 7, 5000]) {
      const found = mended(given, size, "programs")
      expect([given.slice(0, 20), size, found]).toEqual([given.slice(0, 20), size, expected])
    }
})

test("whatever comes: CR and LF are pairs, and an end was one in the bytes of the client", () => {
  const text = fc.array(fc.constantFrom("\r", "\n", ".", "a", "\r\n"), { maxLength: 30 })
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 5 }), (parts, size) => {
      const given = `${parts.join("")}x\r\n`
      const out = mended(given, size)
      expect(out.replaceAll("\r\n", "")).not.toMatch(/[\r\n]/)
      expect(out.split("\r\n.\r\n").length).toBeLessThanOrEqual(
        given.split(/(?<!\r)\r\n\.(?=\r\n)/).length,
      )
    }),
    { seed: 27, numRuns: 3000 },
  )
})
