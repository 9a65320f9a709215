import { expect, test } from "bun:test"
import { textFromHtml } from "../../src/lib/text-from-html"
import fc from "../harness/properties"

test.each([
  ["<p>Ding</p><p>dong</p>", "Ding\n\ndong"],
  ["<p>Ding<br>dong</p>", "Ding\ndong"],
  ["  Ding \n\t dong  ", "Ding dong"],
  ["<h1>Title</h1>\n\n\n<div>a</div><div>b</div>", "Title\n\na\nb"],
  ["<ul><li>one</li><li>two</li></ul>", "- one\n- two"],
  ['<a href="https://b.test/?a=1&amp;b=2">Look</a>', "Look (https://b.test/?a=1&b=2)"],
  ["<A HREF='https://b.test'>https://b.test</A>", "https://b.test"],
  ['<a href="javascript:alert(1)">no</a>', "no"],
  ['<img src="x" alt="A &quot;bell&quot;">', 'A "bell"'],
  ["<style>p{}</style><script>if (a<b) 1</script>text", "text"],
  ["<head><title>t</title></head><body>text</body>", "text"],
  ["a<!-- <p>hidden</p> -->b", "ab"],
  ["1 < 2 &amp;&lt; &euro;3 &#8364; &#x20AC; &nbsp;&unknown;", "1 < 2 &< €3 € € &unknown;"],
  ["&#0;&#13;&#xD800;", "\ufffd\ufffd\ufffd"],
  ['<p title="a > b">text</p>', "text"],
  ["<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"],
  ["a<p", "a"],
  ["", ""],
])("%p reads as %p", (html, text) => {
  expect(textFromHtml(html)).toBe(text)
})

test("any source has a text, without tags that were never closed running on", () => {
  const piece = fc.constantFrom("<", ">", "a", '"', "'", "<!--", "</", "<p>", "<a href=", "&#", ";")
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      expect(typeof textFromHtml(pieces.join(""))).toBe("string")
    }),
  )
})
