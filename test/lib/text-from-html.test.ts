import { expect, test } from "bun:test"
import { textFromHtml } from "../../src/lib/text-from-html"
import fc from "../harness/properties"

test.each([
  ["<p>Ding</p><p>dong</p>", "Ding\n\ndong"],
  ["<p>Ding<br>dong</p>", "Ding\ndong"],
  ["  Ding \n\t dong  ", "Ding dong"],
  ["<h1>Title</h1>\n\n\n<div>a</div><div>b</div>", "Title\n\na\nb"],
  ["<ul><li>one</li><li>two</li></ul>", "- one\n- two"],
  ["<p>x<ol><li>one</li><li>two</li></ol><p>y", "x\n\n1. one\n2. two\n\ny"],
  ["<ol start=3><li>a<li value=7>b<li>c</ol>", "3. a\n7. b\n8. c"],
  ["<ul><li>a<ol><li>b</ol><li><p>c</p></ul>", "- a\n  1. b\n- c"],
  ["<ul><li></li><li>b</li></ul></ul></ol>c", "- b\n\nc"],
  ["<p>x<table><tr><td><p>a<td><p>b<tr><td><p>c<td>d</table>y", "x\n\na b\nc d\n\ny"],
  ["<table><tr><td><p>a<p>b<td><p>c</table>", "a\n\nb\nc"],
  ["<p>a<blockquote>q<p>r</p></blockquote>b", "a\n\n> q\n>\n> r\n\nb"],
  ["<blockquote style='margin:0 0 0 40px;border:none'>own</blockquote>", "own"],
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

test("deep nesting costs no more than its length", () => {
  for (const piece of ["<ul><li>x", "<blockquote>x", "<table><tr><td><p>x"]) {
    const text = textFromHtml(piece.repeat(20_000))
    expect(text.length).toBeLessThan(1_000_000)
  }
})

test("any source has a text, without tags that were never closed running on", () => {
  const piece = fc.constantFrom("<", ">", "a", '"', "'", "<!--", "</", "<p>", "<a href=", "&#", ";")
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      expect(typeof textFromHtml(pieces.join(""))).toBe("string")
    }),
  )
})
