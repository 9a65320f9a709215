import type { Components } from "../../src/client/components"
import type { Context } from "../lib/context"
import { isHeld } from "../lib/email-text"
import { usage } from "../lib/errors"
import { flag } from "../lib/field-flags"
import { asks, row } from "../lib/resource"
import { type Columns, idColumn, wide } from "../lib/table"
import { age, millis } from "../lib/time"

const columns: Columns<Components["Scheduled"]> = {
  ID: idColumn("email"),
  CHANNEL: "channel",
  TO: wide(({ to }) => to, "last"),
  STATUS: ({ status, status_reason }) => (isHeld(status_reason) ? "held" : status),
  SCHEDULED: "scheduled_at",
  DUE: ({ status, status_reason, scheduled_at }) =>
    status === "scheduled" && !isHeld(status_reason) ? age(scheduled_at) : "",
}

/** Messages that wait for their time. */
export const scheduledRows = [
  row("list", "GET /v1/scheduled", {
    about: "list scheduled messages, newest first",
    example: "--status scheduled",
    columns,
    next: ([first]) => first && `scheduled get ${first.id}`,
  }),
  row("get <id>", "GET /v1/scheduled/{scheduled_id}", {
    about: "show when a scheduled message is sent",
    next: ({ id, channel }) => (channel === "email" ? `emails get ${id}` : undefined),
  }),
  row("cancel <id>", "DELETE /v1/scheduled/{scheduled_id}", {
    example: "--yes",
    confirm: asks((id) => `The scheduled message ${id} will not be sent.`, "cancel"),
    done: ({ id }) => `cancelled ${id}`,
  }),
]

const SCHEDULE_NOTE =
  "A time is `in 10m`, `tomorrow 9:00`, `monday 8am`, or ISO 8601. Without an offset it is of this machine's zone."

/** Gives a scheduled email another time. */
export const rescheduleRow = row("reschedule <id> <time>", "PATCH /v1/emails/{email_id}", {
  about: "give a scheduled email another time; `now` sends it",
  note: SCHEDULE_NOTE,
  flags: { scheduled_at: false },
  input: async (_, [, text = ""], context) => ({
    scheduled_at: await readTime(text, "<time>", context),
  }),
  done: ({ id, scheduled_at }) => `${id} is scheduled for ${whenText(scheduled_at ?? "")}`,
})

/** Tells a person what a time means that the clocks skip, or show twice. */
async function readTime(text: string, option: string, { output, paint }: Context) {
  const { at, note }: ScheduledTime = scheduledTime(text, option)
  if (note) await output.note(paint.yellow(note))
  return at
}

export const SCHEDULE_AT = flag(
  ["--schedule-at <time>", "when to send: `in 10m`, `tomorrow 9:00` or ISO"],
  readTime,
)

/** `2026-12-01T08:00:00.000Z (in 9 d)` */
export const whenText = (at: string): string => `${at} (${age(at)})`

/** A moment that a person named, and what to say where the words fit no moment, or two. */
interface ScheduledTime {
  /** ISO 8601, UTC. */
  at: string
  note?: string
}

const FORMS = "write `in 10m`, `tomorrow 9:00`, `monday 18:30`, or a time as 2026-12-01T09:00:00Z"

/**
 * The moment that a text names: `in 10 min`, `tomorrow 9:00`, `monday 8am`, `18:30`, a date with a time, or
 * ISO 8601. A time without offset is of this machine's zone. A time that a clock change skips is moved
 * forward by the length of the gap. Of a time that comes twice the first is taken. Throws exit 2 for other
 * texts, and for a moment in the past. `option` is the flag or argument, for errors.
 */
export function scheduledTime(text: string, option: string, now = millis()): ScheduledTime {
  const words = text.trim().toLowerCase().split(/\s+/)
  const found = spanAhead(words.join(" "), now) ?? withOffset(words) ?? onTheClock(words, now)
  if (!found) throw usage(`${option}: "${text}" is not a time`, FORMS)
  if (Date.parse(found.at) < Math.floor(now / 1000) * 1000) {
    throw usage(`${option}: "${text}" is in the past`, `write a later time, or \`now\``)
  }
  return found
}

const iso = (milliseconds: number) => new Date(milliseconds).toISOString()

const SPAN =
  /^(\d+(?:\.\d+)?) ?(?:(s|secs?|seconds?)|(m|mins?|minutes?)|(h|hrs?|hours?)|(d|days?)|(?:w|weeks?)) ?(?![a-z])/
const UNITS = [1000, 60_000, 3_600_000, 86_400_000]
const WEEK = 604_800_000

/** Beyond it no date can be written. The server has a closer limit. */
const MOST_AHEAD = 100 * 366 * 86_400_000

/** `now`, `in 10 min`, `in 1 h 30 min`, `90m`: each a fixed length, so a day has 24 hours. */
function spanAhead(text: string, now: number): ScheduledTime | undefined {
  if (text === "now") return { at: iso(now) }
  let rest = text.replace(/^in /, "")
  let total = 0
  do {
    const [part, amount, ...units] = SPAN.exec(rest) ?? []
    if (part === undefined) return undefined
    total += Number(amount) * (UNITS[units.findIndex((unit) => unit !== undefined)] ?? WEEK)
    rest = rest.slice(part.length)
  } while (rest !== "")
  return total > MOST_AHEAD ? undefined : { at: iso(now + total) }
}

const OFFSET = /^\d{4}-\d\d-\d\dt\d\d:\d\d(:\d\d(\.\d+)?)?(z|[+-]\d\d(:?\d\d)?)$/

function withOffset([text = "", ...rest]: string[]): ScheduledTime | undefined {
  const parsed = Date.parse(text.toUpperCase().replace(/([+-]\d\d)$/, "$1:00"))
  const is_time = rest.length === 0 && OFFSET.test(text) && !Number.isNaN(parsed)
  return is_time ? { at: iso(parsed) } : undefined
}

/** `[day] time`. Without a day: the next time that the clock shows it. */
function onTheClock(given: string[], now: number): ScheduledTime | undefined {
  const words = given.flatMap((word) => (/^(at|on)$/.test(word) ? [] : splitDate(word)))
  const time = timeOfDay(words.pop() ?? "")
  if (!time || words.length > 1) return undefined
  const [day] = words
  const date = day === undefined ? daysAfter(now, 0) : dateNamed(day, now)
  const found = date && momentAt(date, time)
  const is_over = day === undefined && found && Date.parse(found.at) <= now
  return is_over ? momentAt(daysAfter(now, 1), time) : found
}

/** `2026-12-01t09:00` as its date and its time. */
const splitDate = (word: string): string[] =>
  /^\d{4}-\d\d-\d\dt\d/.test(word) ? [word.slice(0, 10), word.slice(11)] : [word]

type TimeOfDay = [hour: number, minute: number, second: number]

const CLOCK = /^(\d{1,2})(?::(\d\d))?(?::(\d\d))?(am|pm)?$/

/** 12am is midnight, 12pm noon. */
function timeOfDay(word: string): TimeOfDay | undefined {
  const text = { noon: "12pm", midnight: "12am" }[word] ?? word
  const [, shown, minutes, seconds, half] = CLOCK.exec(text) ?? []
  if (shown === undefined || (minutes === undefined && half === undefined)) return undefined
  if (half !== undefined && (Number(shown) < 1 || Number(shown) > 12)) return undefined
  const hour = half ? (Number(shown) % 12) + (half === "pm" ? 12 : 0) : Number(shown)
  const time: TimeOfDay = [hour, Number(minutes ?? 0), Number(seconds ?? 0)]
  return hour < 24 && time[1] < 60 && time[2] < 60 ? time : undefined
}

type Day = [year: number, month: number, day: number]

const WEEKDAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]

/** A weekday is the next one after today. */
function dateNamed(name: string, now: number): Day | undefined {
  if (name === "today") return daysAfter(now, 0)
  if (name === "tomorrow") return daysAfter(now, 1)
  const at = WEEKDAYS.indexOf(name)
  if (at >= 0) return daysAfter(now, ((at - new Date(now).getDay() + 6) % 7) + 1)
  const date = new Date(`${name}T00:00Z`)
  const is_day = /^\d{4}-\d\d-\d\d$/.test(name) && !Number.isNaN(date.getTime())
  if (!is_day || iso(date.getTime()).slice(0, 10) !== name) return undefined
  return [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
}

function daysAfter(now: number, days: number): Day {
  const today = new Date(now)
  return [today.getFullYear(), today.getMonth(), today.getDate() + days]
}

const DAY = 86_400_000

/** The moment at which the clocks here show this, with a note where there are none or two. */
function momentAt(day: Day, time: TimeOfDay): ScheduledTime {
  const found = new Date(...day, ...time)
  const at = found.toISOString()
  const wanted = iso(Date.UTC(...day, ...time)).slice(0, 16)
  const name = `${wanted.replace("T", " ")} in ${Intl.DateTimeFormat().resolvedOptions().timeZone}`
  if (localText(found) !== wanted) {
    const instead = localText(found).slice(11)
    const note = `${name} does not exist, because the clocks are set ahead. Belfry takes ${instead}, which is ${at}.`
    return { at, note }
  }
  // No zone changes its clocks twice within two days.
  const offset = (days: number) => new Date(found.getTime() + days * DAY).getTimezoneOffset()
  const second = new Date(found.getTime() + (offset(1) - offset(-1)) * 60_000)
  if (second <= found || localText(second) !== wanted) return { at }
  const note = `${name} happens twice, because the clocks are set back. Belfry takes the first: ${at}. The second is ${second.toISOString()}.`
  return { at, note }
}

/** What the clocks here show: `2026-12-01T09:00`. */
const localText = (at: Date) => iso(at.getTime() - at.getTimezoneOffset() * 60_000).slice(0, 16)
