import { isoFrom, millisFrom } from "../core/time"

const ISO =
  /^(?<day>\d{4}-\d\d-\d\d)(?:[T ](?<time>\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?(?<offset>Z|[+-]\d\d:?\d\d)?)?$/i

/**
 * Epoch milliseconds of a date or time of ISO 8601, or of a number, which is such already; NaN for anything
 * else. Without an offset it is in UTC: the time zone of the server decides nothing.
 */
export function momentFrom(value: unknown): number {
  if (typeof value === "number") return value
  const found = typeof value === "string" ? ISO.exec(value) : null
  const { day, time = "00:00", offset = "Z" } = found?.groups ?? {}
  if (day === undefined || !isDay(day)) return Number.NaN
  return millisFrom(`${day}T${time}${withColon(offset)}`)
}

/** A 30th of February would be read as a day in March. */
function isDay(day: string): boolean {
  const start = millisFrom(`${day}T00:00:00Z`)
  return !Number.isNaN(start) && isoFrom(start).startsWith(day)
}

const withColon = (offset: string) => offset.toUpperCase().replace(/^(.\d\d):?(\d\d)$/, "$1:$2")
