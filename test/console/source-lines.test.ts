import { expect, test } from "bun:test"
import { sourceLines } from "../../src/console/mail/source-lines"

const MAIL = [
  "From: me@mailbox.test",
  "Content-Type: multipart/mixed;",
  ' boundary="b1"',
  "",
  "preamble: no header",
  "--b1",
  "Content-Type: text/plain",
  "",
  "Hello: a body line",
  "--b1",
  "Content-Type: image/png",
  "Content-Transfer-Encoding: base64",
  "",
  "iVBORw0KGgo=",
  "--b1--",
  "-- ",
  "a signature",
].join("\r\n")

test("each line of a mail is what it is, in its part", () => {
  expect(sourceLines(MAIL).map(({ kind }) => kind)).toEqual([
    ...["name", "name", "more", "body", "body"],
    ...["boundary", "name", "body", "body"],
    ...["boundary", "name", "name", "body", "encoded"],
    ...["boundary", "body", "body"],
  ] as never)
})

test("the lines together are the mail", () => {
  const lines = sourceLines(MAIL)
  expect(lines.map(({ name, text }) => name + text).join("\r\n")).toBe(MAIL)
})

test("a text without any header is one, too", () => {
  expect(sourceLines("").map(({ kind }) => kind)).toEqual(["body"])
  expect(sourceLines("<b>no header</b>").map(({ kind }) => kind)).toEqual(["more"])
})
