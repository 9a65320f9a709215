import { expect, test } from "bun:test"
import { readArf } from "../../src/lib/arf"
import { FEEDBACK } from "../fixtures/reports/arf"
import { seen } from "../fixtures/reports/mime"
import fc from "../harness/properties"

test.each(FEEDBACK.map((one) => [one.name, one] as const))("%s", (_, label) => {
  const arf = readArf(seen(label.raw, label.envelope_from))
  expect(arf?.feedback_type).toBe(label.feedback_type)
  expect(arf?.original_recipients).toEqual(label.recipients)
  expect(arf?.source_ip ?? null).toBe(label.source_ip)
  expect(arf?.arrival_date ?? null).toBe(label.arrival_date)
  expect(arf?.original_headers["x-svc-email-id"]).toEqual(["0199a1c2-7d40-7c3e-9b5a-3f1d2e4c5b6a"])
})

test("whatever stands in a report, reading it ends and never throws", () => {
  const token = fc.constantFrom(
    ...["Feedback-Type: ", "abuse", "opt-out", "\n", "\n ", "Source-IP: ", "1.2.3.4", "a@b.test"],
    ...["Original-Rcpt-To: ", "Arrival-Date: ", "Sun, 22 Nov 2026", "\0", "\ud800", "(", ")", "=?"],
  )
  fc.assert(
    fc.property(fc.array(token, { maxLength: 60 }), fc.string(), (fields, returned) => {
      const part = (content_type: string, text: string) => ({
        content_type,
        params: {},
        filename: null,
        headers: {},
        content: Buffer.from(text),
      })
      const parts = [
        part("message/feedback-report", fields.join("")),
        part("message/rfc822", returned),
      ]
      readArf({ headers: {}, text: null, html: null, parts, envelope_from: "" })
    }),
    { seed: 13, numRuns: 1_000 },
  )
})
