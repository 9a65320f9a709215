import { expect, test } from "bun:test"
import { remoteParts, remoteText } from "../../src/console/mail/remote-parts"

test("remote images and styles are counted, and what stands in the mail is not", () => {
  const html = `<link rel="stylesheet" href="https://x.test/a.css"><style>@import "//x.test/b.css";
.a{background:url(https://x.test/bg.png)}</style>
<img alt="" src="https://x.test/1.png"><img src=//x.test/2.png><img src="cid:logo"><img src="data:image/png;base64,xx">
<td background="http://x.test/3.png"></td><!-- <img src="https://x.test/4.png"> -->`
  expect(remoteParts(html)).toEqual({ images: 4, styles: 2 })
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
