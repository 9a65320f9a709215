import { describe, expect, test } from "bun:test"
import { extractCode } from "../../src/lib/code-extraction"
import { CODES, LINKS } from "../fixtures/reports/extraction"
import fc from "../harness/properties"

describe("the code of", () => {
  test.each(CODES.map((one) => [one.name, one] as const))("%s", (_, { mail, code }) => {
    expect(extractCode(mail)?.code).toBe(code as never)
  })

  test.each(LINKS.map((one) => [one.name, one] as const))("%s is none", (_, { mail }) => {
    expect(extractCode(mail)).toBeUndefined()
  })
})

const piece = fc.constantFrom(
  ...[
    "code ",
    "is ",
    "your ",
    "1234",
    "123 456",
    " ",
    "\n",
    ":",
    "G-",
    "ABC-123",
    "#112233",
    "1 2 3 ",
  ],
  ...["https://", "a@b.test", "验证码", "\ud800", "\0", "<b>", "&#49;", "-", "+49"],
)
const words = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(""))

test("a code has 4 to 8 digits or letters, whatever the mail says", () => {
  const any = fc.option(fc.oneof(words, fc.string()))
  fc.assert(
    fc.property(any, any, any, (subject, text, html) => {
      const found = extractCode({ subject, text, html })
      expect(found?.code ?? "1234").toMatch(/^[A-Za-z0-9]{4,8}$/)
    }),
    { seed: 13, numRuns: 2_000 },
  )
})

test.each([
  ["digits", "1".repeat(4_000_000)],
  ["groups", "1234 ".repeat(800_000)],
  ["words for codes", "code is ".repeat(500_000)],
  ["codes", "code 123456 ".repeat(300_000)],
  ["letters", `code ${"a".repeat(4_000_000)}`],
  ["addresses", "a.".repeat(2_000_000)],
])("4 MB of %s are read in one pass", (_, text) => {
  extractCode({ subject: null, text, html: null })
  extractCode({ subject: text, text: null, html: text })
})
