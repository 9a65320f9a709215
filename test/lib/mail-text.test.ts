import { expect, test } from "bun:test"
import {
  canonical,
  decodeWords,
  dotStuffed,
  fieldOf,
  headerFields,
  isClean,
  isCleanInTurns,
} from "../../src/lib/mail-text"
import fc from "../harness/properties"

test("fields are unfolded, decoded and kept in order", () => {
  const raw = [
    "Received: one",
    "SUBJECT: =?UTF-8?Q?Gr=C3=BC=C3=9Fe_an?=",
    " =?utf-8?b?ZGll?= Glocke",
    "Received: two",
    "no field",
    "",
    "Subject: of the body",
  ].join("\r\n")
  const fields = headerFields(Buffer.from(raw))
  expect(fields).toEqual([
    ["received", "one"],
    ["subject", "Grüße andie Glocke"],
    ["received", "two"],
  ])
  expect(fieldOf(fields, "subject")).toBe("Grüße andie Glocke")
  expect(fieldOf(fields, "from")).toBeUndefined()
})

test.each([
  ["plain", "plain"],
  ["=?iso-8859-1?q?Gr=FC=DFe?=", "Grüße"],
  ["=?utf-8?b?w7w=?= x =?utf-8?q?=C3=BC?=", "ü x ü"],
  ["=?utf-8?q?=C3?= =?utf-8?q?=BC?=", "ü"],
  ["=?utf-8*de?q?Gl=C3=B6ckchen?=", "Glöckchen"],
  ["=?no-such?q?Gr=C3=BC=C3=9Fe?=", "Grüße"],
  ["=?utf-8?Q?Is this=3D=20so??= ?", "Is this= so? ?"],
  ["=?UTF-8?B?5pel5p?==?UTF-8?B?ys?= b", "日本 b"],
  ["=?utf-8?Q?Gr=C3= =BC= C3=9Fe?=", "Grüße"],
  ["=?UTF-8?B?5pc=?= =?utf8?Q?=A5?=", "日"],
  ["=?iso_8859-1:1987?q?=E9?=", "é"],
  ["=?utf-7?Q?Hi_+Jjo-!?=", "Hi ☺!"],
  ["=?utf-8?x?a?=", "=?utf-8?x?a?="],
  ["=?utf-8?q?Hi=0D=0ABcc:_evil@x.test=00=0A?=", "Hi Bcc: evil@x.test "],
])("%p reads as %p", (source, text) => {
  expect(decodeWords(source)).toBe(text)
})

const clean = (text: string) => isClean(Buffer.from(text))

test("every kind of line end becomes CRLF", () => {
  expect(canonical("a\nb\rc\r\nd\n\re\r\r\nf")).toBe("a\r\nb\r\nc\r\nd\r\n\r\ne\r\n\r\nf")
})

test.each(["", "a", "\r\n", "a\r\n\r\nb", "a\r\nb"])("%p is clean", (text) => {
  expect(clean(text)).toBe(true)
})

test.each(["\n", "\r", "\n\r", "a\nb", "a\rb", "a\r\r\nb", "a\r\n\nb", "a\r\nb\r", "a\0b"])(
  "%p is not",
  (text) => {
    expect(clean(text)).toBe(false)
  },
)

test("a long message is looked at in pieces, with a turn of others after each, and to its end", async () => {
  const lines = Buffer.from("a line\r\n".repeat(200_000))
  let turns = 0
  const look = (bytes: Uint8Array) => isCleanInTurns(bytes, async () => void turns++)
  expect([await look(lines), turns]).toEqual([true, 3])
  for (const at of [8, 600_000, lines.length]) {
    const [before, after] = [lines.subarray(0, at), lines.subarray(at)]
    expect(await look(Buffer.concat([before, Buffer.from("\n"), after]))).toBe(false)
  }
  expect(await look(Buffer.alloc(2_000_000, "x"))).toBe(true)
})

test("what was made canonical is clean, and stays as it is", () => {
  const lines = fc.string({ unit: fc.constantFrom("\r", "\n", "a", ".") })
  fc.assert(
    fc.property(lines, (text) => {
      expect(clean(canonical(text))).toBe(true)
      expect(canonical(canonical(text))).toBe(canonical(text))
      expect(clean(text)).toBe(canonical(text) === text)
    }),
  )
})

const stuffed = (text: string) => dotStuffed(Buffer.from(text)).toString()

test.each([
  ["", ".\r\n"],
  ["a", "a\r\n.\r\n"],
  ["a\r\n", "a\r\n.\r\n"],
  [".", "..\r\n.\r\n"],
  ["a\r\n.\r\nb", "a\r\n..\r\nb\r\n.\r\n"],
  ["\r\n..\r\n", "\r\n...\r\n.\r\n"],
  ["a.b\r\n.c", "a.b\r\n..c\r\n.\r\n"],
])("%p becomes %p", (text, wire) => {
  expect(stuffed(text)).toBe(wire)
})

test("a server that takes the dots away again has the message, and one end only", () => {
  const lines = fc.string({ unit: fc.constantFrom("\n", ".", "a") })
  fc.assert(
    fc.property(lines, (text) => {
      const message = canonical(text)
      const wire = stuffed(message).split("\r\n")
      expect(wire.indexOf(".")).toBe(wire.length - 2)
      const read = wire.slice(0, -2).map((line) => line.replace(/^\./, ""))
      const ended = message === "" || message.endsWith("\r\n")
      expect(`${read.join("\r\n")}${read.length > 0 ? "\r\n" : ""}`).toBe(
        ended ? message : `${message}\r\n`,
      )
    }),
  )
})
