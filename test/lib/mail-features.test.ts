import { expect, test } from "bun:test"
import { featuresIn } from "../../src/lib/mail-features"

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
