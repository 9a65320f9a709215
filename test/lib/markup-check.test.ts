import { describe, expect, test } from "bun:test"
import { htmlTokens } from "../../src/lib/html-tokens"
import { markupFaults, unsupportedFeatures } from "../../src/lib/markup-check"

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
