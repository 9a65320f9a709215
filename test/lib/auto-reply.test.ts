import { describe, expect, test } from "bun:test"
import { autoSubmitted } from "../../src/lib/auto-reply"
import { AUTO_REPLIES, NO_AUTO_REPLIES } from "../fixtures/reports/auto-replies"
import { seen } from "../fixtures/reports/mime"

describe("Auto-Submitted of", () => {
  test.each([...AUTO_REPLIES, ...NO_AUTO_REPLIES].map((one) => [one.name, one] as const))(
    "%s",
    (_, { raw, envelope_from, auto_submitted }) => {
      expect(autoSubmitted(seen(raw, envelope_from))).toBe(auto_submitted)
    },
  )
})
