import { expect, test } from "bun:test"
import { isTimeOfDay, quietUntil } from "../../src/lib/preferences"

const until = (at: string, start: string, end: string, zone: string) =>
  new Date(quietUntil(Date.parse(at), { start, end }, zone)).toISOString()

test.each([
  ["in the evening", "2026-11-22T22:00:00.000Z", "2026-11-23T08:00:00.000Z"],
  ["after midnight", "2026-11-23T07:59:59.999Z", "2026-11-23T08:00:00.000Z"],
  ["at the end", "2026-11-23T08:00:00.000Z", "2026-11-23T08:00:00.000Z"],
  ["just before the start", "2026-11-22T21:59:59.999Z", "2026-11-22T21:59:59.999Z"],
])("quiet hours over midnight, %s", (_, at, ends) => {
  expect(until(at, "22:00", "08:00", "UTC")).toBe(ends)
})

test("quiet hours of an afternoon end on the same day", () => {
  expect(until("2026-11-22T13:30:15.000Z", "13:00", "15:30", "UTC")).toBe(
    "2026-11-22T15:30:00.000Z",
  )
  expect(until("2026-11-22T16:00:00.000Z", "13:00", "15:30", "UTC")).toBe(
    "2026-11-22T16:00:00.000Z",
  )
})

test("a night with an hour less ends an hour earlier, and one with an hour more an hour later", () => {
  const night = (at: string) => until(at, "22:00", "08:00", "Europe/Berlin")
  expect(night("2026-03-28T21:00:00.000Z")).toBe("2026-03-29T06:00:00.000Z")
  expect(night("2026-10-24T20:00:00.000Z")).toBe("2026-10-25T07:00:00.000Z")
})

test("quiet hours that end within the hour that is skipped end where it is skipped", () => {
  expect(until("2026-03-29T00:30:00.000Z", "01:00", "02:30", "Europe/Berlin")).toBe(
    "2026-03-29T01:00:00.000Z",
  )
})

test("a quiet quarter in the hour that comes twice is quiet twice", () => {
  const quarter = (at: string) => until(at, "02:15", "02:30", "Europe/Berlin")
  expect(quarter("2026-10-25T00:20:00.000Z")).toBe("2026-10-25T00:30:00.000Z")
  expect(quarter("2026-10-25T00:45:00.000Z")).toBe("2026-10-25T00:45:00.000Z")
  expect(quarter("2026-10-25T01:20:00.000Z")).toBe("2026-10-25T01:30:00.000Z")
})

test("quiet hours that end where an hour begins again go on through it", () => {
  expect(until("2026-10-25T00:59:00.000Z", "02:00", "03:00", "Europe/Berlin")).toBe(
    "2026-10-25T02:00:00.000Z",
  )
})

test.each(["22:00", "00:00", "23:59"])("%s is a time of day", (text) => {
  expect(isTimeOfDay(text)).toBe(true)
})

test.each(["24:00", "7:00", "22:60", "22:00:00", "", "22:00 "])("%p is none", (text) => {
  expect(isTimeOfDay(text)).toBe(false)
})
