import { describe, expect, test } from "bun:test"
import { accessibilityFindings } from "../../src/lib/accessibility-check"
import { contrast, parseColor } from "../../src/lib/color"

const rulesOf = (html: string) =>
  accessibilityFindings(`<html lang="en"><body>${html}</body></html>`).map(({ rule }) => rule)

describe("colors", () => {
  test.each([
    ["#fff", [255, 255, 255]],
    ["#1A2b3C", [26, 43, 60]],
    ["1a2b3c", [26, 43, 60]],
    ["rgb(1, 2,3)", [1, 2, 3]],
    ["rgb(300 0 0)", [255, 0, 0]],
    [" Navy ", [0, 0, 128]],
  ] as const)("%j is read", (value, color) => {
    expect(parseColor(value)).toEqual(color)
  })

  test.each(["", "transparent", "rgba(0,0,0,.5)", "#ff", "constructor", undefined])(
    "%j is none",
    (value) => {
      expect(parseColor(value)).toBeUndefined()
    },
  )

  test("have the contrast that WCAG names", () => {
    expect(contrast([0, 0, 0], [255, 255, 255])).toBe(21)
    expect(contrast([119, 119, 119], [255, 255, 255])).toBeCloseTo(4.48, 2)
    expect(contrast([1, 2, 3], [1, 2, 3])).toBe(1)
  })
})

describe("what makes mail hard to read", () => {
  test("is a source without a language", () => {
    expect(accessibilityFindings("<p>x</p>").map(({ rule }) => rule)).toEqual(["language"])
    expect(accessibilityFindings('<div lang="de">x</div>')).toEqual([])
  })

  test.each([
    ['<img src="a">', ["alternative_text"]],
    ['<img src="a" alt="">', []],
    ['<p style="color:#999">x</p>', ["contrast"]],
    ['<p style="color:#999;background:#000">x</p>', []],
    ['<div bgcolor="#000"><p style="color:white">x</p></div>', []],
    ['<div style="background-color:navy"><p>x</p></div>', ["contrast"]],
    ['<p style="color:#888;font-size:30px">x</p>', []],
    ['<p style="color:#999"> </p>', []],
    ['<p style="color:#999">a</p><p style="color:#999">b</p>', ["contrast"]],
    ["<table><tr><td>x</td></tr></table>", ["layout_table"]],
    ['<table role="presentation"><tr><td>x</td></tr></table>', []],
    ["<table><tr><th>x</th></tr></table>", []],
    ["<h1>a</h1><h3>b</h3>", ["heading_order"]],
    ["<h2>a</h2><h3>b</h3><h1>c</h1>", []],
    ['<a href="x">Click here</a>', ["link_text"]],
    ['<a href="x"><img src="a" alt="Shop"></a>', []],
    ['<a href="x"> </a>', ["link_text"]],
    ['<a name="x"></a>', []],
  ])("in %j is %j", (html, rules) => {
    expect(rulesOf(html)).toEqual(rules)
  })

  test("is told with the line and what to do", () => {
    const [found] = accessibilityFindings('<html lang="en">\n<img src="a">')
    expect(found?.detail).toBe(
      'Line 2: An image has no alternative text. Add alt, or alt="" where it only decorates.',
    )
  })

  test("comes to an end for a mail of 100,000 nested elements", () => {
    expect(rulesOf('<div style="color:#999">'.repeat(100_000))).toEqual([])
  })
})
