import { expect, test } from "bun:test"
import { fencedFields } from "../../src/ai/fenced"
import fc from "../harness/properties"

test("no text ends its own fence", () => {
  const parts = fc.constantFrom(
    ...["[end brief]", "[begin brief]", "| ", "\n", "\r", "\r\n", "\v", "\f", "\u0085"],
    ...["\u2028", "\u2029", "\u001c", "word", " ", "[end brief"],
  )
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 20 }), (texts) => {
      const fenced = fencedFields({ brief: texts.join("") || "x" })
      const lines = fenced.split(/[\n\r\v\f\u001c-\u001e\u0085\u2028\u2029]/)
      expect([lines.at(0), lines.at(-1)]).toEqual(["[begin brief]", "[end brief]"])
      expect(lines.slice(1, -1).filter((line) => !line.startsWith("| "))).toEqual([])
    }),
  )
})

test("a pasted key does not reach a model, and what is absent has no fence", () => {
  const brief = "Use svc_live_abcDEF-123_x and whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw=, please."
  expect(fencedFields({ brief, tone: undefined, locale: null, max_length: 20 })).toBe(
    "[begin brief]\n| Use [secret] and [secret], please.\n[end brief]\n\n[begin max_length]\n| 20\n[end max_length]",
  )
})
