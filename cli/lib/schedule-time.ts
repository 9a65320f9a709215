import { usage } from "./errors"
import { millis } from "./time"

/** A moment that a person named, and what to say where the words fit no moment, or two. */
export interface ScheduledTime {
  /** ISO 8601, UTC. */
  at: string
  note?: string
}

interface Reading {
  /** The flag or argument, for errors. */
  option: string
  /** Of times without a zone; default: the zone of this machine. */
  zone?: string
  /** Epoch milliseconds. */
  now?: number
}

/**
 * The moment that a text names: `in 10 min`, `tomorrow 9:00 Europe/Berlin`, `monday 8am`, `18:30`, a date
 * with a time, or ISO 8601. A time without offset and zone is of this machine's zone. A time that a clock
 * change skips is moved forward by the length of the gap. Of a time that comes twice the first is taken.
 * Throws exit 2 for other texts, and for a moment in the past.
 */
export function scheduledTime(text: string, { option, ...reading }: Reading): ScheduledTime {
  const now = reading.now ?? millis()
  const words = text.trim().split(/\s+/).filter(Boolean)
  const found = spanAhead(words, now) ?? withOffset(words) ?? onTheClock(words, now, reading.zone)
  if (!found) throw usage(`${option}: "${text}" is not a time`, FORMS)
  if (Date.parse(found.at) < Math.floor(now / 1000) * 1000) {
    throw usage(`${option}: "${text}" is in the past`, `write a later time, or \`now\``)
  }
  return found
}

const FORMS =
  "write `in 10 min`, `tomorrow 9:00 Europe/Berlin`, `monday 18:30`, or a time as 2026-12-01T09:00:00Z"

const iso = (milliseconds: number) => new Date(milliseconds).toISOString()

const UNITS: [RegExp, number][] = [
  [/^(s|sec|secs|second|seconds)$/, 1000],
  [/^(m|min|mins|minute|minutes)$/, 60_000],
  [/^(h|hr|hrs|hour|hours)$/, 3_600_000],
  [/^(d|day|days)$/, 86_400_000],
  [/^(w|week|weeks)$/, 604_800_000],
]

/** `now`, `in 10 min`, `in 1 h 30 min`, `90m`: each a fixed length, so a day has 24 hours. */
function spanAhead(words: string[], now: number): ScheduledTime | undefined {
  const [first, ...rest] = words
  if (first?.toLowerCase() === "now" && rest.length === 0) return { at: iso(now) }
  const parts = (first?.toLowerCase() === "in" ? rest : words).join(" ").toLowerCase()
  if (!/^(\d+(\.\d+)? ?[a-z]+ ?)+$/.test(parts)) return undefined
  let total = 0
  for (const [, amount, unit = ""] of parts.matchAll(/(\d+(?:\.\d+)?) ?([a-z]+)/g)) {
    const [, length] = UNITS.find(([names]) => names.test(unit)) ?? []
    if (length === undefined) return undefined
    total += Number(amount) * length
  }
  return total > MOST_AHEAD ? undefined : { at: iso(now + total) }
}

/** Beyond it no date can be written. The server has a closer limit. */
const MOST_AHEAD = 100 * 366 * 86_400_000

const OFFSET = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/i

function withOffset(words: string[]): ScheduledTime | undefined {
  const [text = "", ...rest] = words
  const parsed = Date.parse(text)
  const is_time = rest.length === 0 && OFFSET.test(text) && !Number.isNaN(parsed)
  return is_time ? { at: iso(parsed) } : undefined
}

/** A day and a time as clocks and calendars show them. */
interface LocalTime {
  year: number
  /** From 0. */
  month: number
  day: number
  hour: number
  minute: number
  second: number
}

/** `[day] time [zone]`. Without a day: the next time that the clock shows it. */
function onTheClock(given: string[], now: number, own?: string): ScheduledTime | undefined {
  const words = given.flatMap((word) => (/^(at|on)$/i.test(word) ? [] : splitDate(word)))
  const named = words.length > 1 ? zoneNamed(words.at(-1) ?? "") : undefined
  const zone = named ?? own ?? Intl.DateTimeFormat().resolvedOptions().timeZone
  const rest = named === undefined ? words : words.slice(0, -1)
  const time = timeOfDay(rest.at(-1) ?? "")
  if (!time || rest.length > 2) return undefined
  const today = localTime(zone, now)
  if (rest.length === 2) {
    const date = dateNamed(rest[0] ?? "", today)
    return date && momentIn(zone, { ...date, ...time })
  }
  const soon = momentIn(zone, { ...today, ...time })
  return Date.parse(soon.at) > now ? soon : momentIn(zone, { ...daysAfter(today, 1), ...time })
}

/** `2026-12-01T09:00` as its date and its time. */
const splitDate = (word: string): string[] =>
  /^\d{4}-\d\d-\d\dT\d/i.test(word) ? [word.slice(0, 10), word.slice(11)] : [word]

function zoneNamed(word: string): string | undefined {
  if (!/^[a-z+-]/i.test(word) || timeOfDay(word) || WEEKDAYS.includes(word.toLowerCase()))
    return undefined
  try {
    return Intl.DateTimeFormat("en", { timeZone: word }).resolvedOptions().timeZone
  } catch {
    return undefined
  }
}

type TimeOfDay = Pick<LocalTime, "hour" | "minute" | "second">

const CLOCK = /^(\d{1,2})(?::(\d\d))?(?::(\d\d))?(am|pm)?$/i

function timeOfDay(word: string): TimeOfDay | undefined {
  if (/^noon$/i.test(word)) return { hour: 12, minute: 0, second: 0 }
  if (/^midnight$/i.test(word)) return { hour: 0, minute: 0, second: 0 }
  const [, hours, minutes, seconds = "0", half] = CLOCK.exec(word) ?? []
  if (hours === undefined || (minutes === undefined && half === undefined)) return undefined
  const hour = half ? halfDay(Number(hours), half) : Number(hours)
  const time = { hour, minute: Number(minutes ?? 0), second: Number(seconds) }
  return hour >= 0 && hour < 24 && time.minute < 60 && time.second < 60 ? time : undefined
}

/** 12am is midnight, 12pm noon. */
function halfDay(hours: number, half: string): number {
  if (hours < 1 || hours > 12) return -1
  return (hours % 12) + (/pm/i.test(half) ? 12 : 0)
}

const WEEKDAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]

/** A weekday is the next one after today. */
function dateNamed(word: string, today: LocalTime): LocalTime | undefined {
  const name = word.toLowerCase()
  if (name === "today") return today
  if (name === "tomorrow") return daysAfter(today, 1)
  const at = WEEKDAYS.indexOf(name)
  if (at >= 0) {
    const weekday = new Date(asIfUtc(today)).getUTCDay()
    return daysAfter(today, ((at - weekday + 6) % 7) + 1)
  }
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(name) ?? []
  const date = { ...today, year: Number(year), month: Number(month) - 1, day: Number(day) }
  const is_day = day !== undefined && daysAfter(date, 0).day === date.day
  return is_day && daysAfter(date, 0).month === date.month ? date : undefined
}

const asIfUtc = ({ year, month, day, hour, minute, second }: LocalTime): number =>
  Date.UTC(year, month, day, hour, minute, second)

const daysAfter = (date: LocalTime, days: number): LocalTime =>
  partsOfUtc(asIfUtc({ ...date, day: date.day + days }))

function partsOfUtc(milliseconds: number): LocalTime {
  const date = new Date(milliseconds)
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth(),
    day: date.getUTCDate(),
    hour: date.getUTCHours(),
    minute: date.getUTCMinutes(),
    second: date.getUTCSeconds(),
  }
}

/** What the clocks of a zone show at a moment. */
const localTime = (zone: string, moment: number): LocalTime =>
  partsOfUtc(moment + offsetAt(zone, moment))

/** How far the clocks of a zone are ahead of UTC at a moment, in milliseconds. */
function offsetAt(zone: string, moment: number): number {
  const parts = formatOf(zone).formatToParts(moment)
  const value = (type: string) => Number(parts.find((part) => part.type === type)?.value)
  const shown = Date.UTC(
    value("year"),
    value("month") - 1,
    value("day"),
    value("hour"),
    value("minute"),
    value("second"),
  )
  return shown - Math.floor(moment / 1000) * 1000
}

const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone)
  if (known) return known
  const two = "2-digit"
  const made = new Intl.DateTimeFormat("en-US", {
    ...{ timeZone, calendar: "gregory", numberingSystem: "latn", hourCycle: "h23" },
    ...{ year: "numeric", month: two, day: two, hour: two, minute: two, second: two },
  })
  formats.set(timeZone, made)
  return made
}

const DAY = 86_400_000

/** The moment at which the clocks of a zone show this, with a note where there are none or two. */
function momentIn(zone: string, local: LocalTime): ScheduledTime {
  const shown = asIfUtc(local)
  // No zone is a day away from UTC, and none changes its clocks twice within two days.
  const [before, after] = [offsetAt(zone, shown - DAY), offsetAt(zone, shown + DAY)]
  const moments = [...new Set([before, after])]
    .map((offset) => shown - offset)
    .filter((moment) => offsetAt(zone, moment) === shown - moment)
    .sort((one, other) => one - other)
  const [first, second] = moments
  const name = `${iso(shown).slice(0, 16).replace("T", " ")} in ${zone}`
  if (first === undefined) {
    const moved = shown - before
    const instead = iso(moved + offsetAt(zone, moved)).slice(11, 16)
    const note = `${name} does not exist, because the clocks are set ahead. It is taken as ${instead}, which is ${iso(moved)}.`
    return { at: iso(moved), note }
  }
  if (second === undefined) return { at: iso(first) }
  const note = `${name} comes twice, because the clocks are set back. The first is taken: ${iso(first)}. The second is ${iso(second)}.`
  return { at: iso(first), note }
}
