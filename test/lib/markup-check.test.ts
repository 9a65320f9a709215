import { describe, expect, test } from "bun:test"
import { htmlTokens } from "../../src/lib/html-tokens"
import { featuresIn, markupFaults, unsupportedFeatures } from "../../src/lib/markup-check"

const details = (html: string) => markupFaults(html).map(({ detail }) => detail)

describe("tokens of html", () => {
  test("are tags, texts, raw texts and comments, and together the source", () => {
    const html = "a < b<p class='x>y'>one<!-- <b> --><style>p>a{}</style>two</p>&amp;"
    const tokens = [...htmlTokens(html)].map((token) =>
      token.kind === "tag"
        ? `${token.closing ? "/" : ""}${token.name}`
        : `${token.kind}:${html.slice(token.start, token.end)}`,
    )
    expect(tokens).toEqual([
      "text:a < b",
      "p",
      "text:one",
      "comment:<!-- <b> -->",
      "style",
      "raw:p>a{}",
      "/style",
      "text:two",
      "/p",
      "text:&amp;",
    ])
  })

  test.each([
    ["<".repeat(200_000)],
    ["<a ".repeat(100_000)],
    ["<!--".repeat(100_000)],
    ["<style>".repeat(50_000)],
    ["<a href='".repeat(50_000)],
  ])("of hostile html of %#n repetitions come to an end", (html) => {
    expect([...htmlTokens(html)].length).toBeLessThan(200_001)
  })
})

describe("faults of markup", () => {
  test.each([
    ["<p>One<p>Two<ul><li>a<li>b</ul>"],
    ["<!doctype html><html><body><table><tr><td>x<td>y</table></body>"],
    ["<img src=a><br><hr/><div/>"],
    ["<!--[if mso]><table><tr><td><![endif]-->x<!--[if mso]></td></tr></table><![endif]-->"],
    ["1 < 2 and 3 > 2"],
    [""],
  ])("are none in %j", (html) => {
    expect(markupFaults(html)).toEqual([])
  })

  test.each([
    ["<div>\n<b>x</div>", ["Line 2: <b> is not closed. Add </b>."]],
    ["<div>x", ["Line 1: <div> is not closed. Add </div>."]],
    ["x\n</div>", ["Line 2: </div> closes nothing. Remove it, or add <div> before it."]],
    ["<p>x <a href='y>z</a>", ["Line 1: <a> has no end. Add the missing > or quote."]],
    ["a<!-- b", ["Line 1: A comment has no end."]],
  ])("of %j are told with their line", (html, wanted) => {
    expect(details(html)).toEqual(wanted)
  })
})

test("of many faults the first are told, and how many more there are, in little time", () => {
  const found = details("</div>\n".repeat(100_000))
  expect(found).toHaveLength(21)
  expect(found.slice(-2)).toEqual([
    "Line 20: </div> closes nothing. Remove it, or add <div> before it.",
    "There are 99980 more.",
  ])
})

test("features that mail programs leave out are counted in elements and styles", () => {
  const html = `<style>@import "a"; .x { display: flex } .y { display:flex }</style>
    <form><input></form><div style="position: fixed">x</div><p>display:grid</p>`
  const found = unsupportedFeatures(html).map(({ feature, count }) => [feature, count])
  expect(found).toEqual([
    ["<form>", 1],
    ["<input>", 1],
    ["position", 1],
    ["flex layout", 2],
    ["@import", 1],
  ])
})

test.each<[html: string, names: string[]]>([
  ["<video></video><VIDEO>", ["element video", "element video"]],
  ['<img srcset="a 2x" src="https://a.test/x.SVG?1">', ["attribute srcset", "image svg"]],
  ['<img src="data:image/webp;base64,AA">', ["image base64", "image webp"]],
  ["<input type=checkbox>", ["input checkbox"]],
  ['<p style="display: flex; gap:1.5rem">', ["value display=flex", "property gap", "unit rem"]],
  [
    "<style>a:hover::before{color:var(--a)}</style>",
    ["pseudo hover", "pseudo before", "function var"],
  ],
  [
    "<style>@media (prefers-color-scheme:dark){p{}}</style>",
    ["media prefers-color-scheme", "at media"],
  ],
  ["<style>@font-face{src:url(x.woff)}</style>", ["at font-face"]],
  [
    "<style>/* p{gap:1px} */ .a > b[x]{width:calc(1% + 2vh)!important}</style>",
    ["selector >", "selector [", "function calc", "unit vh", "word !important"],
  ],
  [
    "<style>p{background:linear-gradient(red,blue)}",
    ["function linear-gradient", "property background"],
  ],
])("%s", (html, names) => {
  const found = featuresIn(html)
  for (const name of names) expect([name, found.has(name)]).toEqual([name, true])
})

test("each use counts, and what stands in comments and texts does not", () => {
  const found = featuresIn(
    "<!-- <video> --><p>display:flex <b style='gap:1px'></b><b style='gap:2px'>",
  )
  expect(found.get("property gap")).toBe(2)
  expect(found.has("element video")).toBe(false)
  expect(found.has("value display=flex")).toBe(false)
})

test("a font is no word that a feature is named by, and a colour is no selector", () => {
  const found = featuresIn("<style>p{font-family:system-ui;color:#f00}</style>")
  expect(found.has("word system-ui")).toBe(true)
  expect(found.has("value font-family=system-ui")).toBe(false)
  expect([...found.keys()].filter((name) => name.startsWith("selector"))).toEqual([])
})

test("functions of a value are counted by their whole names", () => {
  const css = "a{width:calc(1px + min(2px,3px));filter:drop-shadow(0 0);-x:1calc(2)}"
  const found = featuresIn(`<style>${css}</style>`)
  const functions = [...found].filter(([name]) => name.startsWith("function "))
  expect(functions).toEqual([
    ["function calc", 2],
    ["function min", 1],
    ["function drop-shadow", 1],
  ])
})

test.each([
  ["a long word", `<style>a{b:${"a".repeat(4_000_000)}}</style>`],
  ["a long word of a style", `<p style="b:${"a-".repeat(2_000_000)}">`],
  ["dashes", `<style>a{b:${"-".repeat(4_000_000)}}</style>`],
  ["selectors", `<style>${"::a".repeat(1_000_000)}{}</style>`],
  ["at rules", `<style>@media ${"( ".repeat(2_000_000)}{}</style>`],
])("4 MB of %s are read in one pass", (_, html) => {
  expect(featuresIn(html).size).toBeGreaterThan(0)
})
