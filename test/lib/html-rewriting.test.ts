import { describe, expect, test } from "bun:test"
import { linkTarget, rewriteHtml } from "../../src/lib/html-rewriting"
import { type MadeMail, madeMail } from "./html-mails"

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
