import { expect, test } from "bun:test"
import {
  remoteParts,
  remoteText,
  sourceLines,
  textPieces,
  withoutOwnPixel,
} from "../../src/console/mail/readable-parts"
import { newId } from "../../src/core/ids"
import { trackedHtml } from "../../src/tracking/tracked-html"

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

const linksOf = (text: string) => textPieces(text).flatMap(({ url }) => url ?? [])

test.each([
  ["See https://a.test/x?y=1#z.", ["https://a.test/x?y=1#z"]],
  ["(http://a.test/) and <https://b.test/c>", ["http://a.test/", "https://b.test/c"]],
  ["https://a.test/wiki/Bell_(tower), then", ["https://a.test/wiki/Bell_(tower)"]],
  ["HTTPS://A.TEST/x!?", ["HTTPS://A.TEST/x"]],
  ["https://ü.test/ü", ["https://ü.test/ü"]],
  ["javascript:alert(1) data:text/html,x file:///etc ftp://a.test xhttp://a.test", []],
  ["https:// http://. https://%", []],
])("the links of the text %p are %p", (text, expected) => {
  expect(linksOf(text)).toEqual(expected)
})

test("all pieces together are the text", () => {
  for (const text of ["", "no link", "a https://a.test b\nhttps://b.test", "https://a.test"])
    expect(textPieces(text).map((piece) => piece.text)).toEqual(
      text === "" ? [] : expect.any(Array),
    )
  const text = "Hello https://a.test/x, and\r\n(https://b.test).\n"
  expect(
    textPieces(text)
      .map((piece) => piece.text)
      .join(""),
  ).toBe(text)
})

test("a text of nothing but addresses, or of one that does not end, has few links and takes no time", () => {
  expect(linksOf("https://a.test/ ".repeat(5000)).length).toBe(1000)
  const began = performance.now()
  textPieces("http://".repeat(150_000))
  textPieces(`https://a.test/${")".repeat(1_000_000)}`)
  textPieces(`https://a.test/${"(".repeat(1_000_000)}`)
  expect(performance.now() - began).toBeLessThan(2000)
})

test("remote images and styles are counted, and what stands in the mail is not", () => {
  const html = `<link rel="stylesheet" href="https://x.test/a.css"><style>@import "//x.test/b.css";
.a{background:url(https://x.test/bg.png)}</style>
<img alt="" src="https://x.test/1.png"><img src=//x.test/2.png><img src="cid:logo"><img src="data:image/png;base64,xx">
<td background="http://x.test/3.png"></td><!-- <img src="https://x.test/4.png"> -->`
  expect(remoteParts(html)).toEqual({ images: 4, styles: 2 })
})

test("the pixel of this server's own tracking is no remote image, and other pixels are", () => {
  const key = new Uint8Array(32)
  const untracked = { urls: [], prefixes: [] }
  const base_url = "https://go.example.com"
  const tracking = { message_id: newId(), base_url, opens: true, clicks: true, untracked, key }
  const other = '<img src="https://x.test/t/o/abc.png" width="1" height="1" alt="">'
  const html = trackedHtml(`<body><p>Hello</p>${other}</body>`, tracking)
  expect(remoteParts(html).images).toBe(2)
  expect(remoteParts(withoutOwnPixel(html)).images).toBe(1)
  const half = '<img src="https://x/t/o/'.repeat(20_000)
  expect(withoutOwnPixel(half)).toBe(half)
})

test("a person reads what is missing", () => {
  expect(remoteText({ images: 0, styles: 0 })).toBeUndefined()
  expect(remoteText({ images: 1, styles: 0 })).toStartWith("1 remote image is not loaded here")
  expect(remoteText({ images: 2, styles: 1 })).toStartWith(
    "2 remote images and 1 remote style sheet are not loaded here",
  )
})

test("a mail that repeats half a tag is read in one go", () => {
  const halves = ["<img ", "<link ", "<!--", "url(", "src=", "background=", "@import "]
  for (const half of halves) {
    const repeated = half.repeat(40_000)
    const followed = `<img ${half}${" ".repeat(150_000)}`
    const found = [remoteParts(repeated), remoteParts(followed)]
    expect([half, ...found]).toEqual([half, NOTHING, NOTHING])
  }
})

const NOTHING = { images: 0, styles: 0 }
