import { expect, test } from "bun:test"
import { readPeriod } from "../../src/http/period"
import { movableClock } from "../harness/clock"

const clock = movableClock()

const WEDNESDAY = Date.parse("2026-11-25T23:10:00.000Z")

test.each([
  ["day", "2026-11-25", "2026-11-26"],
  ["week", "2026-11-23", "2026-11-30"],
  [undefined, "2026-11-01", "2026-12-01"],
  ["month", "2026-11-01", "2026-12-01"],
  ["2026-12", "2026-12-01", "2027-01-01"],
  ["2026-11-01/2026-11-15", "2026-11-01", "2026-11-15"],
  ["2026-11-01T00:00:00Z/2026-11-02T00:00:00.000Z", "2026-11-01", "2026-11-02"],
  ["2024-02-01/2025-02-01", "2024-02-01", "2025-02-01"],
])("%s is from %s to %s", (text, from, to) => {
  clock.freeze()
  clock.advance({ seconds: (WEDNESDAY - Date.now()) / 1000 })
  const moment = (day: string) => `${day}T00:00:00.000Z`
  expect(readPeriod(text)).toEqual({ start: moment(from), end: moment(to) })
})

test.each([
  "year",
  "2026-13",
  "9999-12",
  "2026-11-15/2026-11-15",
  "2026-11-15/2026-11-01",
  "2026-02-30/2026-03-02",
  "2024-01-01/2025-01-02",
  "2026-11-01T10:00:00Z/2026-11-02",
  "2026-11-01",
])("%s is no period", (text) => {
  expect(() => readPeriod(text)).toThrow("period: The value must be day, week, month")
})
