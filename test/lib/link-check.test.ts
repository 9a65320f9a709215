import { describe, expect, test } from "bun:test"
import { linksInHtml } from "../../src/lib/mail-links"
import { linkFindings } from "../../src/lib/spam-content"

const rulesOf = (html: string) => linkFindings(linksInHtml(html)).map(({ rule }) => rule)

test("links of html have their decoded target and what people see", () => {
  const html = `<a href="https://a.test/?x=1&amp;y=2"><b>Our</b>\n shop &amp; more</a><a name=x>no</a><A HREF='#top'>up`
  expect(linksInHtml(html).map(({ href, text }) => ({ href, text }))).toEqual([
    { href: "https://a.test/?x=1&y=2", text: "Our shop & more" },
    { href: "#top", text: "up" },
  ])
})

describe("a link", () => {
  test.each([
    ["https://shop.example.com/a", "Shop", []],
    ["https://shop.example.com/a", "example.com", []],
    ["https://shop.example.com/a", "https://www.example.com/b", []],
    ["https://evil.example.net/", "www.bank.example.com", ["other_domain"]],
    ["http://a.example.com/", "Shop", ["without_https"]],
    ["https://bit.ly/x", "Shop", ["shortener"]],
    ["", "Shop", ["empty"]],
    ["#", "Shop", ["empty"]],
    ["#top", "Top", []],
    ["mailto:a@b.test", "a@b.test", []],
    ["tel:+4912345", "call", []],
    ["www.example.com", "Shop", ["malformed"]],
    ["https://a b.test/", "Shop", ["malformed"]],
    ["javascript:alert(1)", "Shop", ["scheme"]],
    ["https://example.com", "version 1.2.3", []],
  ])("to %j with the text %j has the findings %j", (href, text, rules) => {
    expect(rulesOf(`<a href="${href}">${text}</a>`)).toEqual(rules)
  })
})

test("only the first 2,000 links are read", () => {
  expect(linksInHtml('<a href="x">y</a>'.repeat(3_000))).toHaveLength(2_000)
})
