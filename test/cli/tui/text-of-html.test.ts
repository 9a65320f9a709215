import { expect, test } from "bun:test"
import { textOfHtml } from "../../../cli/tui/text-of-html"

test("blocks are lines, and links say where they lead", () => {
  const html = `<html><head><title>T</title><style>p{color:red}</style></head><body>
    <h1>Hello&nbsp;Ann</h1><p>Your <b>receipt</b>
    is <a href="https://a.test/?a=1&amp;b=2">here</a>.</p><ul><li>one</li><li>two</li></ul>
    <script>alert("<p>no</p>")</script>Bye &#128075; &lt;3<br>x</body></html>`
  expect(textOfHtml(html).replaceAll(/\n+/g, "\n").split("\n")).toEqual([
    "Hello Ann",
    "Your receipt is here (https://a.test/?a=1&b=2).",
    "- one",
    "- two",
    "Bye 👋 <3",
    "x",
  ])
})

test("a link that shows its address says it once", () => {
  expect(textOfHtml('<a href="https://a.test">https://a.test</a>')).toBe("https://a.test")
})

test("broken markup loses no more than itself, and takes no longer", () => {
  expect(textOfHtml("<p>one<p>two <a href='https://a.test'>open")).toBe("one\ntwo open")
  expect(textOfHtml("a < b &unknown; &#999999999;")).toContain("&unknown;")
  expect(textOfHtml("<a href='x'>".repeat(20_000)).length).toBeLessThan(200_000)
})
