import { afterAll, describe, expect, test } from "bun:test"
import { scheduledTime } from "../../cli/commands/scheduled"
import { Failure } from "../../cli/lib/errors"
import { changesOf, HOUR, MINUTE, shownIn, ZONES } from "../harness/clock-changes"

/** A Sunday. */
const NOW = Date.parse("2026-11-22T10:15:30.000Z")

const own_zone = process.env.TZ
afterAll(() => {
  if (own_zone === undefined) delete process.env.TZ
  else process.env.TZ = own_zone
})

function read(text: string, zone = "UTC", now = NOW) {
  process.env.TZ = zone
  return scheduledTime(text, "--schedule-at", now)
}

describe("read", () => {
  test.each([
    ["now", "2026-11-22T10:15:30.000Z"],
    ["in 10 min", "2026-11-22T10:25:30.000Z"],
    ["in 90s", "2026-11-22T10:17:00.000Z"],
    ["In 2 hours".toLowerCase(), "2026-11-22T12:15:30.000Z"],
    ["in 1 h 30 min", "2026-11-22T11:45:30.000Z"],
    ["in 1.5 days", "2026-11-23T22:15:30.000Z"],
    ["in 2 weeks", "2026-12-06T10:15:30.000Z"],
    ["45m", "2026-11-22T11:00:30.000Z"],
    ["2026-12-01T09:00:00+02:00", "2026-12-01T07:00:00.000Z"],
    ["2026-12-01T09:00Z", "2026-12-01T09:00:00.000Z"],
    ["2026-12-01T09:00", "2026-12-01T09:00:00.000Z"],
    ["today 18:30", "2026-11-22T18:30:00.000Z"],
    ["tomorrow at 9am", "2026-11-23T09:00:00.000Z"],
    ["tomorrow 12am", "2026-11-23T00:00:00.000Z"],
    ["tomorrow 12pm", "2026-11-23T12:00:00.000Z"],
    ["2026-12-01T09:00:00+0100", "2026-12-01T08:00:00.000Z"],
    ["2026-12-01T09:00:00+01", "2026-12-01T08:00:00.000Z"],
    ["monday 8:00", "2026-11-23T08:00:00.000Z"],
    ["sunday 8:00", "2026-11-29T08:00:00.000Z"],
    ["on Friday at 5:45pm", "2026-11-27T17:45:00.000Z"],
    ["18:30", "2026-11-22T18:30:00.000Z"],
    ["9:00", "2026-11-23T09:00:00.000Z"],
  ])("%s", (text, at) => {
    expect(read(text)).toEqual({ at })
  })

  test.each([
    ["2026-12-01 9:00", "Europe/Berlin", "2026-12-01T08:00:00.000Z"],
    ["2026-12-01T09:00", "Asia/Kolkata", "2026-12-01T03:30:00.000Z"],
    ["tomorrow noon", "America/New_York", "2026-11-23T17:00:00.000Z"],
    ["tomorrow 0:30", "Pacific/Kiritimati", "2026-11-23T10:30:00.000Z"],
  ])("%s on a machine in %s", (text, zone, at) => {
    expect(read(text, zone)).toEqual({ at })
  })

  test("a day is a day of the machine's zone", () => {
    const late = Date.parse("2026-11-22T23:30:00Z") // Monday morning in Tokyo
    expect(read("today 12:00", "Asia/Tokyo", late).at).toBe("2026-11-23T03:00:00.000Z")
    expect(read("tomorrow 12:00", "Asia/Tokyo", late).at).toBe("2026-11-24T03:00:00.000Z")
  })
})

describe("refused with the forms that are understood", () => {
  test.each([
    ...["", "soon", "in", "in 10", "in min", "in 10 parsecs", "tomorrow", "9", "25:00", "13pm"],
    ...["0am", "9:60", "next monday 8:00", "2026-13-01 9:00", "2026-02-30 9:00"],
    ...["tomorrow 9:00 Europe/Berlin", "Europe/Berlin", "in 99999999999 weeks"],
  ])("%s", (text) => {
    const refused = problem(text)
    expect(refused.exit).toBe(2)
    expect(refused.message).toBe(`--schedule-at: "${text}" is not a time`)
  })

  test.each(["today 8:00", "2026-11-01 9:00", "2020-01-01T00:00:00Z"])("%s is over", (text) => {
    expect(problem(text).message).toBe(`--schedule-at: "${text}" is in the past`)
  })
})

function problem(text: string): Failure {
  try {
    read(text)
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
  throw new Error(`${text} was read`)
}

test.each(ZONES)("both clock changes of %s", (zone) => {
  const changes = changesOf(zone)
  expect(changes.map(({ by }) => by > 0).sort()).toEqual([false, true])
  for (const { moment, by } of changes) {
    const now = moment - 20 * HOUR
    const clock = (at: number) => new Date(at).toISOString().slice(0, 16).replace("T", " ")
    const ask = (local: number) => read(clock(local), zone, now)
    const iso = (at: number) => new Date(at).toISOString()
    const before = shownIn(zone, moment - MINUTE)
    const after = shownIn(zone, moment)
    // Clear times on both sides.
    const far = Math.abs(by) + MINUTE
    expect(ask(shownIn(zone, moment - far))).toEqual({ at: iso(moment - far) })
    expect(ask(shownIn(zone, moment + far))).toEqual({ at: iso(moment + far) })
    if (by > 0) {
      const skipped = before + MINUTE + by / 2
      const { at, note } = ask(skipped)
      expect(at).toBe(iso(moment + by / 2))
      expect(note).toContain("does not exist")
      expect(note).toContain(iso(shownIn(zone, moment + by / 2)).slice(11, 16))
      expect(ask(before)).toEqual({ at: iso(moment - MINUTE) })
      expect(ask(after)).toEqual({ at: iso(moment) })
    } else {
      const doubled = after + -by / 2
      const { at, note } = ask(doubled)
      expect(at).toBe(iso(moment + by / 2))
      expect(note).toContain("happens twice")
      expect(note).toContain(iso(moment - by / 2))
    }
  }
})
