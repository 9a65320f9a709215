import { describe, expect, test } from "bun:test"
import { childOf, childrenOf, readXml } from "../../src/lib/dmarc-report"
import fc from "../harness/properties"

const LIMITS = { elements: 1_000, depth: 10 }
const read = (text: string) => readXml(text, LIMITS)

test("elements, text, CDATA and references are read", () => {
  const root = read(`<?xml version="1.0"?>
    <!-- a <comment> -->
    <x:Feedback xmlns:x="urn:x" a='>'>
      <a>1 &lt; 2 &amp; <![CDATA[3 < 4]]></a><b/><b c="/">two</b>
    </x:Feedback>`)
  expect(root?.name).toBe("feedback")
  expect(childOf(root, "a")?.text).toBe("1 < 2 & 3 < 4")
  expect(childrenOf(root, "b").map(({ text }) => text)).toEqual(["", "two"])
  expect(childOf(root, "none")).toBeUndefined()
})

describe("refused is", () => {
  test.each([
    ["a document type", "<!DOCTYPE a><a/>"],
    ["an entity", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'],
    ["an external entity", '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'],
    ["a document type within", "<a><!DOCTYPE b></a>"],
    ["a missing end", "<a><b></b>"],
    ["a wrong end", "<a><b></a></b>"],
    ["an end too many", "<a/></a>"],
    ["a second root", "<a/><b/>"],
    ["a comment without end", "<a><!-- </a>"],
    ["a tag without end", `<a ${"b".repeat(10_000)}`],
    ["nothing", ""],
    ["text", "no xml at all"],
    ["too many elements", `<a>${"<b/>".repeat(1_001)}</a>`],
    ["too deep elements", "<a>".repeat(11) + "</a>".repeat(11)],
  ])("%s", (_, text) => {
    expect(read(text)).toBeUndefined()
  })
})

test("reading ends, whatever the text is", () => {
  const token = fc.constantFrom(
    ...["<", ">", "</", "/>", "<a", "<a>", "</a>", "<!--", "-->", "<![CDATA[", "]]>", "<?", "?>"],
    ...['"', "'", "&lt;", "&#x41;", "&", "a", " ", "=", ":", "<!DOCTYPE", "\0", "\ud800"],
  )
  fc.assert(
    fc.property(fc.array(token, { maxLength: 100 }), (tokens) => {
      read(tokens.join(""))
    }),
    { seed: 13, numRuns: 3_000 },
  )
})

test.each([
  ["tags that never end", "<a ".repeat(1_000_000)],
  ["quotes that never end", '<a b="'.repeat(500_000)],
  ["comments that never end", "<!--".repeat(1_000_000)],
  ["a deep tree", "<a>".repeat(1_000_000)],
  ["one long text", `<a>${"&amp;".repeat(500_000)}</a>`],
])("%s are read in one pass", (_, text) => {
  readXml(text, { elements: 400_000, depth: 20 })
})
