import { expect, test } from "bun:test"
import { firstDifference, parseTags, slipOf } from "../../src/lib/record-text"
import fc from "../harness/properties"

const MEANT = "v=DMARC1; p=none"
const slip = (text: string) => slipOf(text, (cleaned) => cleaned === MEANT)?.mistake

test.each([
  [`"${MEANT}"`, "quoted"],
  [`\u201c${MEANT}\u201d`, "typographic_quotes"],
  ["v=DMARC1\\; p=none", "backslashes"],
  [`${MEANT}\t`, "invisible_characters"],
  ["v=DMARC1;\u00a0p=none", "invisible_characters"],
  [`\u200b${MEANT}`, "invisible_characters"],
  [` ${MEANT} `, "outer_spaces"],
  [`_dmarc 3600 IN TXT "${MEANT}"`, "record_pasted"],
  ["v=DMARC1; p=reject", undefined],
  [MEANT, undefined],
])("%p slipped by %p", (text, mistake) => {
  expect(slip(text)).toBe(mistake)
})

test("the first difference is where it is, in any two texts", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (one, other) => {
      const at = firstDifference(one, other)
      if (at < 0) return one === other
      return one.slice(0, at) === other.slice(0, at) && one[at] !== other[at]
    }),
  )
})

const tagsOf = (text: string) => [...parseTags(text).tags]

test("tags come in their order, without the spaces around them, the first of a name", () => {
  const tags = [
    ["v", "DKIM1"],
    ["k", "rsa"],
    ["p", "A B"],
  ]
  expect(tagsOf(" v = DKIM1 ;k=rsa; p=A B; k=x;")).toEqual(tags as [string, string][])
  expect(tagsOf("p=")).toEqual([["p", ""]])
})

test("what is none is told, and so is an empty part between others", () => {
  expect(parseTags("v=DKIM1; hello; p=x")).toMatchObject({ strange: ["hello"], has_empty: false })
  expect(parseTags("v=DKIM1;; p=x;")).toMatchObject({ strange: [], has_empty: true })
})
