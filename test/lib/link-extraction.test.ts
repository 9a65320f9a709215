import { describe, expect, test } from "bun:test"
import { extractLink } from "../../src/lib/link-extraction"
import { CODES, LINKS } from "../fixtures/reports/extraction"
import fc from "../harness/properties"

describe("the link of", () => {
  test.each([...LINKS, ...CODES].map((one) => [one.name, one] as const))("%s", (_, one) => {
    expect(extractLink(one.mail)?.url).toBe(one.link as never)
  })

  test("at least 30 mails", () => {
    expect(LINKS.length + CODES.length).toBeGreaterThanOrEqual(30)
  })
})

const piece = fc.constantFrom(
  ...[
    "<a ",
    "href=",
    '"',
    "'",
    ">",
    "</a>",
    "https://a.test/verify?token=abcdefghijklmnop",
    "Confirm",
  ],
  ...["javascript:", "&amp;", " ", "\n", "<img ", "style=", "http://[", "%", "\0", "\ud800"],
)

test("a link is one of http, whatever the mail says", () => {
  const any = fc.option(fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join("")))
  fc.assert(
    fc.property(any, any, (text, html) => {
      const url = extractLink({ subject: null, text, html })?.url ?? "https://a.test"
      expect(new URL(url).protocol).toMatch(/^https?:$/)
    }),
    { seed: 13, numRuns: 2_000 },
  )
})

test.each([
  ["tags", "<a href='https://a.test/verify?token=abcdefghijklmnop'>".repeat(80_000)],
  ["tags without end", "<a ".repeat(1_500_000)],
  ["quotes", '<a href="'.repeat(500_000)],
  ["addresses", "https://a.test/verify ".repeat(200_000)],
  ["one address", `https://a.test/${"a".repeat(4_000_000)}`],
  ["pictures", "<a href=https://a.test/1>".concat("<img ".repeat(800_000))],
])("4 MB of %s are read in one pass", (_, source) => {
  extractLink({ subject: null, text: source, html: source })
})
