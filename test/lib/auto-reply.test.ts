import { describe, expect, test } from "bun:test"
import { autoSubmitted, classify } from "../../src/lib/auto-reply"
import { FEEDBACK } from "../fixtures/reports/arf"
import { AUTO_REPLIES, NO_AUTO_REPLIES } from "../fixtures/reports/auto-replies"
import { STANDARD_DSNS } from "../fixtures/reports/dsn-standard"
import { TEXT_DSNS } from "../fixtures/reports/dsn-text"
import { seen, seenByMailparser } from "../fixtures/reports/mime"

describe("Auto-Submitted of", () => {
  test.each([...AUTO_REPLIES, ...NO_AUTO_REPLIES].map((one) => [one.name, one] as const))(
    "%s",
    (_, { raw, envelope_from, auto_submitted }) => {
      expect(autoSubmitted(seen(raw, envelope_from))).toBe(auto_submitted)
    },
  )
})

const bounces = [...STANDARD_DSNS, ...TEXT_DSNS].map((one) => ({ ...one, kind: "bounce" }))
const corpus = [...bounces, ...FEEDBACK, ...AUTO_REPLIES, ...NO_AUTO_REPLIES]

describe("the kind of", () => {
  test.each(corpus.map((one) => [one.name, one] as const))(
    "%s",
    async (_, { raw, envelope_from, kind }) => {
      const found = classify(seen(raw, envelope_from))
      expect(found.kind).toBe(kind as never)
      expect(classify(await seenByMailparser(raw, envelope_from))).toEqual(found)
    },
  )

  test("at least 60 reports and 20 automatic replies", () => {
    expect(bounces.length + FEEDBACK.length).toBeGreaterThanOrEqual(60)
    expect(AUTO_REPLIES.length).toBeGreaterThanOrEqual(20)
  })
})
