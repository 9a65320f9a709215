import { expect, test } from "bun:test"
import fc from "fast-check"
import { canonical } from "../../src/lib/crlf"
import { dotStuffed } from "../../src/lib/dot-stuff"

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
