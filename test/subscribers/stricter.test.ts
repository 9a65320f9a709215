import { describe, expect, test } from "bun:test"
import type { ChosenPreferences, QuietHours } from "../../src/lib/preferences"
import { stricterPreferences, stricterStatus } from "../../src/subscribers/stricter"
import fc from "../harness/properties"

const quiet = (more: Partial<QuietHours> = {}): QuietHours => ({
  enabled: true,
  start: "22:00",
  end: "07:00",
  timezone: null,
  channels: ["push"],
  ...more,
})

describe("of two preferences", () => {
  const CASES: [string, ChosenPreferences | null, ChosenPreferences | null, unknown][] = [
    ["none and none", null, null, null],
    ["a no and nothing", { email: { enabled: false } }, null, { email: { enabled: false } }],
    ["a yes and nothing", { email: { enabled: true } }, null, {}],
    [
      "a no and a yes",
      { email: { categories: { news: false, offers: true } } },
      { email: { categories: { news: true, offers: true } } },
      { email: { categories: { news: false, offers: true } } },
    ],
    [
      "topics by channel",
      { topics: { a: { email: true, push: false }, b: { email: false } } },
      { topics: { a: { email: true, push: true } } },
      { topics: { a: { email: true, push: false }, b: { email: false } } },
    ],
    ["workflows", { workflows: { w: false, v: true } }, {}, { workflows: { w: false } }],
    [
      "keys that every object has",
      { workflows: { constructor: true } },
      { workflows: { toString: true } },
      {},
    ],
    [
      "own quiet hours and those of the project",
      { quiet_hours: quiet() },
      {},
      { quiet_hours: quiet() },
    ],
    [
      "quiet hours that are off and those of the project",
      { quiet_hours: quiet({ enabled: false }) },
      {},
      {},
    ],
    [
      "the longer quiet hours, for the channels of both",
      { quiet_hours: quiet() },
      { quiet_hours: quiet({ start: "20:00", channels: ["sms"] }) },
      { quiet_hours: quiet({ start: "20:00", channels: ["push", "sms"] }) },
    ],
  ]

  test.each(CASES)("%s", (_, one, other, both) => {
    expect(stricterPreferences(one, other)).toEqual(both as ChosenPreferences | null)
  })

  const value = fc.option(fc.boolean(), { nil: undefined })
  const entries = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.boolean())
  const given = fc.record({ enabled: value, categories: entries }).map(
    ({ enabled, categories }): ChosenPreferences => ({
      email: { ...(enabled !== undefined && { enabled }), categories },
    }),
  )

  test("neither allows what the two together do not", () => {
    fc.assert(
      fc.property(given, given, (one, other) => {
        const both = stricterPreferences(one, other)?.email ?? {}
        for (const key of ["a", "b", "c"]) {
          const all = [one, other].map(({ email }) => email?.categories?.[key])
          const wanted = all.includes(false) ? false : all.every((each) => each) || undefined
          expect(both.categories?.[key]).toBe(wanted as boolean)
        }
      }),
    )
  })

  test("the order does not matter, and a preference with itself is itself", () => {
    fc.assert(
      fc.property(given, given, (one, other) => {
        expect(stricterPreferences(one, other)).toEqual(stricterPreferences(other, one))
        expect(stricterPreferences(one, one)?.email?.enabled).toBe(one.email?.enabled as boolean)
      }),
    )
  })
})

test("of two statuses the one under which less is sent stays", () => {
  expect(stricterStatus("active", "unsubscribed")).toBe("unsubscribed")
  expect(stricterStatus("blocked", "unsubscribed")).toBe("blocked")
  expect(stricterStatus("active", "active")).toBe("active")
})
