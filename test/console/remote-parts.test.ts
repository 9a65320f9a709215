import { expect, test } from "bun:test"
import { remoteParts, remoteText, withoutOwnPixel } from "../../src/console/mail/remote-parts"
import { newId } from "../../src/core/ids"
import { trackedHtml } from "../../src/tracking/tracked-html"

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
