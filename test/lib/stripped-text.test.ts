import { describe, expect, test } from "bun:test"
import { strippedText } from "../../src/lib/stripped-text"
import { textFromHtml } from "../../src/lib/text-from-html"
import { REPLIES } from "../fixtures/reports/replies"
import fc from "../harness/properties"

describe("of a reply only what is new is left:", () => {
  test.each(REPLIES.map((one) => [one.name, one] as const))("%s", (_, { text, reply }) => {
    expect(strippedText(text)).toBe(reply)
    expect(strippedText(text.replaceAll("\n", "\r\n"))).toBe(reply)
  })

  test("at least 30 replies", () => {
    expect(REPLIES.length).toBeGreaterThanOrEqual(30)
  })
})

test.each([
  [
    "Outlook, with a list",
    `<p class=MsoNormal>Please ship.<o:p></o:p></p><ol><li>one</li><li>two</li></ol><p class=MsoNormal>Bye</p><p class=MsoNormal><o:p>&nbsp;</o:p></p><div style='border:none;border-top:solid #E1E1E1 1.0pt'><p class=MsoNormal><b>From:</b> Shop &lt;shop@mailbox.test&gt; <br><b>Sent:</b> Thursday, October 8, 2026 9:14 AM<br><b>To:</b> Ann<br><b>Subject:</b> RE: ticket</p></div><p>Want it?</p>`,
    "Please ship.\n\n1. one\n2. two\n\nBye",
  ],
  [
    "an answer below the quotation",
    `<div>On 22/11/2026 10:14, Sender wrote:<br></div><blockquote type="cite"><p>Old.</p></blockquote><p>I paid.</p>`,
    "I paid.",
  ],
])("of html: %s", (_, html, reply) => {
  expect(strippedText(textFromHtml(html))).toBe(reply)
})

const piece = fc.constantFrom(
  ...["\n", "\r\n", "> ", "-- ", "--", "On 22 Nov 2026 at 10:14, ", "Ann <a@b.test>", " wrote:"],
  ...["From: ", "Sent: ", "To: ", "Subject: ", "-----Original Message-----", "____________", "a"],
  ...["Sent from my iPhone", ":", "\ud800", "\0", "年", " ", "*"],
)
const hostile = fc.array(piece, { maxLength: 80 }).map((pieces) => pieces.join(""))

test("text that is there never vanishes, and what is left was there", () => {
  fc.assert(
    fc.property(fc.oneof(hostile, fc.string({ unit: "binary" })), (text) => {
      const left = strippedText(text)
      const has_words = text.trim() !== ""
      expect(left !== "" || !has_words).toBeTrue()
      expect(left.length).toBeLessThanOrEqual(text.length)
      expect(left.isWellFormed()).toBeTrue()
    }),
    { seed: 13, numRuns: 3_000 },
  )
})

test.each([
  ["quotes", "> ".repeat(2_000_000)],
  ["one line", "a".repeat(4_000_000)],
  ["colons", "10:14 <a@b.test> :".repeat(200_000)],
  ["wrapped introductions", "On 10:14 2026 a\n".repeat(300_000)],
  ["addresses", `On 10:14 2026 ${"<a@".repeat(1_000_000)}`],
  ["labels", "From: \n".repeat(500_000)],
  ["rules", `${"_".repeat(1_000_000)}\n`.repeat(4)],
])("4 MB of %s are read in one pass", (_, text) => {
  strippedText(text)
})
