import { expect, test } from "bun:test"
import { firstOf, headersIn, partOfType, textOfPart } from "../../src/lib/seen-mail"
import { base64, multipart, part, seen } from "../fixtures/reports/mime"

const RAW = multipart(
  "Received: one\nReceived: two\nFrom: ann@example.com\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=",
  "multipart/mixed",
  [
    part(
      "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable",
      "Gr=FC=DFe",
    ),
    part("Content-Type: text/html", "<p>x</p>"),
    part(
      `Content-Type: text/csv; charset=iso-8859-1; name="a.csv"\nContent-Transfer-Encoding: base64\nX-A: b`,
      base64(Buffer.from("ü", "latin1")),
    ),
    part("Content-Type: message/rfc822\nContent-Disposition: inline", "Subject: within\n\ninner"),
  ],
)

test("headers, bodies and parts are there, and a message within stays whole", () => {
  const mail = seen(RAW, "ann@example.com")
  expect(mail.headers).toMatchObject({ received: ["one", "two"], subject: ["Grüße"] })
  expect(firstOf(mail.headers, "none")).toBe("")
  expect(mail.text).toBe("Grüße")
  expect(mail.html).toBe("<p>x</p>")
  expect(mail.parts.map(({ content_type, filename }) => [content_type, filename])).toEqual([
    ["text/csv", "a.csv"],
    ["message/rfc822", null],
  ])
  expect(mail.parts[0]?.headers["x-a"]).toEqual(["b"])
  const within = partOfType(mail, new Set(["message/rfc822"]))
  expect(within && headersIn(textOfPart(within))).toMatchObject({ subject: ["within"] })
  expect(mail.parts[0] && textOfPart(mail.parts[0])).toBe("ü")
})

test("neither NUL nor half a character is left in headers and bodies", () => {
  const mail = seen("Subject: a\0b =?utf-16be?b?2AA=?=\r\n\r\nc\0d", "")
  expect(JSON.stringify([mail.headers, mail.text])).not.toMatch(/\\u0000|\\ud8/i)
  expect(mail.text).toBe("cd")
})

test("no header name reaches a prototype", () => {
  const { headers } = seen("__proto__: a\r\nconstructor: b\r\n\r\n", "")
  expect(Object.entries(headers)).toEqual([
    ["__proto__", ["a"]],
    ["constructor", ["b"]],
  ])
  expect(headers.toString).toBeUndefined()
})

test("a header within text may begin with empty lines or the line of an mbox", () => {
  for (const start of ["", "\n\n", "\r\n", "From ann Sun Nov 22\n", ">From ann Sun\n"]) {
    expect(headersIn(`${start}Subject: a\n b\nTo: c\n\nX: d`)).toEqual(
      Object.assign(Object.create(null), { subject: ["a b"], to: ["c"] }),
    )
  }
})
