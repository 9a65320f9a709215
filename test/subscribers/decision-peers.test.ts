import { describe, expect, test } from "bun:test"
import {
  AUDIENCE_CHANNELS,
  OUTGOING_CHANNELS,
  type QuietHours,
  quietUntil,
} from "../../src/lib/preferences"
import { type DecisionInput, decide } from "../../src/subscribers/decision"
import { missingZones } from "../harness/peers"
import fc from "../harness/properties"
import { sizes } from "../harness/sizes"
import { askPython } from "./decision-peer"

const CASES = sizes.decisions
const SEED = 43

const ZONES = [
  ...["Europe/Berlin", "Europe/Dublin", "America/New_York", "America/St_Johns", "America/Santiago"],
  ...["Africa/Casablanca", "Asia/Kathmandu", "Asia/Kolkata", "Australia/Lord_Howe"],
  ...["Australia/Adelaide", "Pacific/Chatham", "Pacific/Kiritimati"],
]

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const slug = fc.constantFrom("a", "b", "constructor")
const flag = fc.boolean()
const zone = fc.constantFrom(...ZONES)
const level = fc.constantFrom("on" as const, "off" as const)
const channel = fc.constantFrom(...AUDIENCE_CHANNELS)

/** Rarely chosen, so that later rows come up as often as early ones. */
const seldom = fc.integer({ min: 0, max: 9 }).map((number) => number === 0)

const orNull = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { freq: 2 })

const choices = fc.dictionary(slug, flag, { maxKeys: 2 })

const timeOfDay = fc
  .integer({ min: 0, max: 24 * 60 - 1 })
  .map((minute) => new Date(minute * MINUTE).toISOString().slice(11, 16))

const quietHours: fc.Arbitrary<QuietHours> = fc
  .record({
    enabled: seldom.map((off) => !off),
    start: timeOfDay,
    end: timeOfDay,
    timezone: orNull(zone),
    channels: fc.subarray([...OUTGOING_CHANNELS]),
  })
  .filter(({ start, end }) => start !== end)

const channelChoices = fc.record(
  { enabled: seldom.map((off) => !off), categories: choices },
  noneNeeded(),
)

const preferences = fc.record(
  {
    ...{ email: channelChoices, push: channelChoices, sms: channelChoices },
    in_app: channelChoices,
    topics: fc.dictionary(
      slug,
      fc.record({ email: flag, push: flag, sms: flag, in_app: flag }, noneNeeded()),
      { maxKeys: 2 },
    ),
    workflows: choices,
    quiet_hours: orNull(quietHours),
  },
  noneNeeded(),
)

function noneNeeded(): { requiredKeys: [] } {
  return { requiredKeys: [] }
}

const input: fc.Arbitrary<Required<DecisionInput>> = fc.record({
  subscriber: fc.option(
    fc.record({
      status: fc.constantFrom("active", "active", "active", "active", "unsubscribed", "blocked"),
      timezone: orNull(zone),
      preferences: orNull(preferences),
      unsubscribes: fc.array(fc.record({ channel, category: fc.constantFrom("", "a", "b") }), {
        maxLength: 1,
      }),
    }),
    { freq: 6 },
  ),
  is_suppressed: seldom,
  category: orNull(
    fc.record({
      slug,
      critical: seldom,
      default: level,
      channels: fc.subarray([...AUDIENCE_CHANNELS], { minLength: 2 }),
    }),
  ),
  topic: orNull(fc.record({ key: slug, default: level })),
  workflow: orNull(fc.record({ key: slug, is_critical: seldom })),
  ignores_preferences: seldom,
  channel,
  stream: fc.constantFrom("transactional", "transactional", "broadcast", "auth"),
  project: fc.record({
    default_preferences: orNull(preferences),
    quiet_hours: orNull(quietHours),
    timezone: zone,
    frequency_cap: orNull(fc.constant({ count: 2, per_seconds: 60 })),
  }),
  recent: fc.integer({ min: 0, max: 2 }),
  at: fc.integer({ min: Date.parse("2024-01-01"), max: Date.parse("2028-01-01") }),
})

describe.skipIf(missingZones())("a second implementation, in Python,", () => {
  test(`decides ${CASES} random cases by the same rows`, async () => {
    const cases = fc.sample(input, { numRuns: CASES, seed: SEED })
    const theirs = await askPython<[number, boolean, string | null, string | null]>("decide", cases)
    const rows = new Map<number, number>()
    for (const [at, one] of cases.entries()) {
      const { row, is_allowed, reason, deferred_until } = decide(one)
      const ours = [row, is_allowed, reason, deferred_until]
      if (!Bun.deepEquals(ours, theirs[at]))
        expect({ one, decided: ours }).toEqual({ one, decided: [...(theirs[at] ?? [])] })
      rows.set(row, (rows.get(row) ?? 0) + 1)
    }
    expect(theirs).toHaveLength(CASES)
    const seldom_decided = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].filter(
      (row) => (rows.get(row) ?? 0) < CASES * 0.006,
    )
    expect(seldom_decided).toEqual([])
  })

  test("ends quiet hours at the same moments, on the days on which the clocks of 12 zones change", async () => {
    const cases = ZONES.flatMap((zone) => daysOf(zone).flatMap((day) => windowsAround(day, zone)))
    const theirs = await askPython<string | null>("quiet", cases)
    for (const [index, { at, hours, zone }] of cases.entries()) {
      const ends = quietUntil(at, hours, zone)
      const ours = ends > at ? new Date(ends).toISOString() : null
      if (ours !== theirs[index]) {
        expect({ zone, hours, at, ends: ours }).toEqual({
          zone,
          hours,
          at,
          ends: theirs[index] ?? null,
        })
      }
    }
    expect(theirs).toHaveLength(cases.length)
    expect(theirs.filter((ends) => ends !== null).length).toBeGreaterThan(cases.length / 4)
  })
})

const offset = (zone: string, at: number) => {
  const parts = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" })
  return parts.formatToParts(at).find(({ type }) => type === "timeZoneName")?.value
}

/** The moments of 2026 from which on a day holds a change of the clock; a day in June without one. */
function daysOf(zone: string): number[] {
  const year = Array.from({ length: 365 }, (_, day) => Date.parse("2026-01-01") + day * DAY)
  const changes = year.filter((day) => offset(zone, day) !== offset(zone, day + DAY))
  return changes.length > 0 ? changes : [Date.parse("2026-06-15")]
}

/** Quiet hours of every kind, asked from the evening before until the day after. */
function windowsAround(day: number, zone: string) {
  const hours = [
    ...[
      ["22:00", "08:00"],
      ["00:00", "23:59"],
      ["02:15", "02:45"],
      ["01:30", "02:00"],
    ],
    ...[
      ["23:30", "02:30"],
      ["03:00", "02:00"],
      ["02:00", "03:00"],
      ["00:15", "00:45"],
    ],
  ].map(([start = "", end = ""]) => ({ start, end }))
  return hours.flatMap((window) =>
    Array.from({ length: 54 * 2 }, (_, half) => half)
      .filter((half) => half % sizes.quiet_steps === 0)
      .map((half) => ({
        at: day - 15 * HOUR + half * 30 * MINUTE + (half % 5) * 211_001,
        hours: window,
        zone,
      })),
  )
}
