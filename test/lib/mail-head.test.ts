import { expect, test } from "bun:test"
import { decodeWords, headerFields, headerOf } from "../../src/lib/mail-head"

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
  expect(headerOf(fields, "subject")).toBe("Grüße andie Glocke")
  expect(headerOf(fields, "from")).toBeUndefined()
})

test.each([
  ["plain", "plain"],
  ["=?iso-8859-1?q?Gr=FC=DFe?=", "Grüße"],
  ["=?utf-8?b?w7w=?= x =?utf-8?q?=C3=BC?=", "ü x ü"],
  ["=?utf-8?q?=C3?= =?utf-8?q?=BC?=", "ü"],
  ["=?utf-8*de?q?Gl=C3=B6ckchen?=", "Glöckchen"],
  ["=?no-such?q?a?=", "=?no-such?q?a?="],
  ["=?utf-8?x?a?=", "=?utf-8?x?a?="],
])("%p reads as %p", (source, text) => {
  expect(decodeWords(source)).toBe(text)
})
