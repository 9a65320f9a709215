import { describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { SPAM_RULES, spamScore } from "../../src/inbound/spam-score"
import { seen } from "../fixtures/reports/mime"
import { HAM, SPAM } from "../fixtures/reports/spam"
import { root } from "../harness/migrations"
import fc from "../harness/properties"

const corpus = [...SPAM, ...HAM]

describe("the score of", () => {
  test.each(
    corpus.map((one) => [`${one.flagged ? "unwanted" : "wanted"}: ${one.name}`, one] as const),
  )("%s", (_, { raw, verdicts, flagged, rules }) => {
    const found = spamScore(seen(raw, "sender@sender.example"), verdicts)
    expect(found.rules.map(({ rule }) => rule)).toEqual(expect.arrayContaining(rules))
    expect(found).toMatchObject({ flagged })
    expect(found.flagged).toBe(found.score >= 5)
  })

  test("at least 60 mails, half of them wanted", () => {
    expect(SPAM.length).toBeGreaterThanOrEqual(30)
    expect(HAM.length).toBeGreaterThanOrEqual(30)
  })
})

test("each rule is known to apply somewhere, but for those of the verdicts", () => {
  const named = new Set(corpus.flatMap(({ rules }) => rules))
  const unseen = SPAM_RULES.map(([rule]) => rule).filter((rule) => !named.has(rule))
  expect(unseen).toEqual(["dmarc_pass"])
})

test("the page has every rule with its points, in the same order", () => {
  const page = readFileSync(join(root, "docs/inbound.md"), "utf8")
  const section = page.split("## Spam score\n")[1]?.split("\n## ")[0] ?? ""
  const rows = [...section.matchAll(/^\| `(\w+)` \| (-?[\d.]+) \| \S.*\|$/gm)]
  expect(rows.map(([, rule, points]) => [rule, Number(points)])).toEqual(
    SPAM_RULES.map(([rule, points]) => [rule, points]),
  )
})

test("a mail without anything has a score, and many rules are at most 10", () => {
  const none = { spf: null, dkim: null, dmarc: null, arc: null }
  const empty = { headers: {}, text: null, html: null, parts: [], envelope_from: "" }
  expect(spamScore(empty, none).score).toBeGreaterThan(0)
  const [test_string] = SPAM
  const all = { spf: "fail", dkim: "fail", dmarc: "fail", arc: "none" } as const
  expect(spamScore(seen(test_string?.raw ?? "", ""), all).score).toBe(10)
  const { score } = spamScore({ ...empty, text: "Hello Ann" }, { ...none, dmarc: "pass" })
  expect(score).toBeGreaterThanOrEqual(0)
})

const piece = fc.constantFrom(
  ...[
    "<a href=",
    '"',
    "https://",
    "a.test",
    ">",
    "</a>",
    "<img ",
    "style=",
    "display:none",
    "bitcoin",
  ],
  ...[
    "webcam",
    "а",
    "a",
    "\u200b",
    "\ud800",
    "\0",
    " ",
    "\n",
    "Dear friend",
    "!!",
    "$",
    "@",
    "password:",
  ],
)

test("whatever a mail says, its score is a number from 0 to 10", () => {
  const any = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(""))
  const option = fc.option(any)
  fc.assert(
    fc.property(any, any, option, option, fc.string(), (from, subject, text, html, filename) => {
      const headers = { from: [from], subject: [subject], "reply-to": [subject] }
      const part = {
        content_type: "a/b",
        params: {},
        filename,
        headers: {},
        content: Buffer.from("PK\x03\x04"),
      }
      const mail = { headers, text, html, parts: [part], envelope_from: from }
      const { score } = spamScore(mail, { spf: "none", dkim: "pass", dmarc: "fail", arc: null })
      expect(score >= 0 && score <= 10 && Math.round(score * 10) === score * 10).toBeTrue()
    }),
    { seed: 13, numRuns: 2_000 },
  )
})

test.each([
  ["letters", "a".repeat(4_000_000)],
  ["links", '<a href="https://a.test/">https://b.test/</a>'.repeat(80_000)],
  ["tags without end", "<a ".repeat(1_300_000)],
  ["styles", '<p style="display:none '.repeat(180_000)],
  ["pictures", "<img ".repeat(800_000)],
  ["earnings", "earn up to $5".repeat(300_000)],
  ["work", "work from home ".repeat(250_000)],
  ["hidden characters", "a\u200b".repeat(1_500_000)],
])("4 MB of %s are judged in one pass", (_, source) => {
  const headers = { from: [source], subject: [source], "reply-to": [source] }
  const mail = { headers, text: source, html: source, parts: [], envelope_from: "" }
  spamScore(mail, { spf: "none", dkim: "none", dmarc: "none", arc: "none" })
  spamScore({ ...mail, text: null }, { spf: "none", dkim: "none", dmarc: "none", arc: "none" })
})
