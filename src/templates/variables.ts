import { isoFrom, millisFrom } from "../core/time"
import type { TemplateVariable } from "./tables"

type Check = (value: unknown) => boolean

const isText: Check = (value) => ["string", "number", "boolean"].includes(typeof value)

const isNumber: Check = (value) =>
  typeof value === "number" || (typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value.trim()))

const isDate: Check = (value) =>
  ["number", "string"].includes(typeof value) && !Number.isNaN(momentFrom(value))

const isAddress: Check = (value) =>
  typeof value === "string" && /^(https?:\/\/|mailto:|tel:)\S+$/i.test(value) && URL.canParse(value)

const CHECKS: Record<TemplateVariable["type"], Check> = {
  string: isText,
  number: isNumber,
  boolean: (value) => typeof value === "boolean",
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  array: Array.isArray,
  date: isDate,
  url: isAddress,
}

/**
 * Whether a value can stand for a variable of this type. A number may be written as text, and a date is
 * ISO 8601 or epoch milliseconds.
 */
export const isOfType = (type: TemplateVariable["type"], value: unknown): boolean =>
  CHECKS[type](value)

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
