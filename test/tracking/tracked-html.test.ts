import { describe, expect, test } from "bun:test"
import {
  linkTarget,
  rewriteHtml,
  trackedHtml,
  untrackedHtml,
} from "../../src/tracking/tracked-html"
import { type MadeMail, madeMail } from "../lib/html-mails"

const KEY = new Uint8Array(32).fill(7)

const tracking = (key = KEY) => ({
  message_id: "0199a1c2-0000-7000-8000-000000000001",
  ...{ key, base_url: "https://mail.test", opens: true, clicks: true },
  untracked: { urls: [], prefixes: [] },
})

test("what was tracked here is again as it was, with its addresses escaped", () => {
  const html = `<p><a class=x href='https://a.test/?x=1&amp;y="2"'>a</a> <a href=https://b.test>b</a></p>`
  const again = untrackedHtml(trackedHtml(html, tracking()), KEY)
  expect(again).not.toContain("/t/")
  expect(again).toContain("href='https://a.test/?x=1&#38;y=&#34;2&#34;'")
  expect(again).toContain("<a href=https://b.test>")
})

test("what another server tracks stays, and so does what only looks like a token", () => {
  const foreign = trackedHtml("<a href='https://a.test/'>a</a>", tracking(KEY.map(() => 8)))
  expect(untrackedHtml(foreign, KEY)).toBe(foreign)
  const alike = "<a href='https://mail.test/t/c/abc'>a</a><img src=\"https://mail.test/t/o/x.gif\">"
  expect(untrackedHtml(alike, KEY)).toBe(alike)
})

const ENDING = '<img src="https://t.test/pixel">'

const written = ({ pieces }: MadeMail) =>
  pieces.map((piece) => (typeof piece === "string" ? piece : piece.href)).join("")

function expected({ pieces, ending_at }: MadeMail) {
  const parts = pieces.map((piece) => (typeof piece === "string" ? piece : `[${piece.target}]`))
  return [...parts.slice(0, ending_at), ENDING, ...parts.slice(ending_at)].join("")
}

test("200 mails are byte for byte the same outside of their links and the ending", () => {
  for (let seed = 0; seed < 200; seed++) {
    const made = madeMail(seed)
    const linkFor = (target: string) => `[${target}]`
    expect(rewriteHtml(written(made), { linkFor, ending: ENDING })).toBe(expected(made))
  }
})

test("without links to change only the ending comes", () => {
  for (let seed = 0; seed < 200; seed++) {
    const html = written(madeMail(seed))
    const kept = rewriteHtml(html, { linkFor: () => undefined, ending: "" })
    expect(kept).toBe(html)
    expect(rewriteHtml(html, { linkFor: undefined, ending: "" })).toBe(html)
  }
})

describe("the time grows with the length of the source and no more", () => {
  test.each([
    ["open brackets", "<"],
    ["tags that never end", "<a href="],
    ["quotes that never end", '<a href="'],
    ["comments", "<!---->"],
    ["comments that never end", "<!--"],
    ["scripts that never end", "<script>"],
    ["references", '<a href="https://x.test/&amp;&amp;">'],
    ["ampersands", `<a href="https://x.test/${"&".repeat(900)}">`],
  ])("%s", (_, part) => {
    const html = part.repeat(Math.ceil(1_000_000 / part.length))
    const rewritten = rewriteHtml(html, { linkFor: () => undefined, ending: "" })
    expect(rewritten).toBe(html)
  })
})

describe("an address", () => {
  test.each([
    ["https://a.test/?x=1&amp;y=2", "https://a.test/?x=1&y=2"],
    ["https://a.test/?x=1&y=2", "https://a.test/?x=1&y=2"],
    ["https://a.test/?x=1&lt=2", "https://a.test/?x=1&lt=2"],
    ["https://a.test/?x=1&amp", "https://a.test/?x=1&"],
    ["https://a.test/?x&ampy", "https://a.test/?x&ampy"],
    ["&#104;ttps://a.test", "https://a.test"],
    ["https&colon;&sol;&sol;a.test", "https://a.test"],
    ["ht\ntps://a.test/\tx ", "https://a.test/x"],
    ["https://a.test/a b", "https://a.test/a b"],
  ])("%p is %p to a browser", (value, target) => {
    expect(linkTarget(value)).toBe(target)
  })

  test.each([
    "",
    "a.test",
    "//a.test",
    "https:a.test",
    "https:/a.test",
    "http:\\\\a.test",
    "javascript:alert(1)",
    "data:text/html,x",
    "https://",
    "https://a:b@c.test",
    "https://a@c.test",
    "https://a.test/&copy;",
    "https://a.test/&copy",
    "https://a.test/&#0;",
    "https://a.test/&#xd800;",
    "https://a.test/&#150;",
    "https://a.test/&unknown;",
    `https://a.test/${"x".repeat(2_000)}`,
    "https://a.test/\ud800",
  ])("%p is left alone", (value) => {
    expect(linkTarget(value)).toBeUndefined()
  })
})
