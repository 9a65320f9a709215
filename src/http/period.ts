import { Type as t } from "@sinclair/typebox"
import { invalid } from "../core/errors"
import { boundsOf, currentPeriod, isoFrom, millisFrom, today } from "../core/time"
import { MONTH } from "./field-schemas"
import { isDay } from "./page"

const DAY_MILLISECONDS = 86_400_000
const MOST_DAYS = 366

/** Which days statistics are of (contract 00, section 3). */
export const period = t.Optional(
  t.String({
    maxLength: 80,
    description:
      "The current `day`, `week` (from Monday) or `month` (default), or a month as YYYY-MM. Or at most 366 days in UTC as `2026-11-01/2026-11-15`, without the last one.",
  }),
)

/** The first moment of some days in UTC, and the first one after them. */
export interface Period {
  start: string
  end: string
}

/** Throws 422 for what is no period. */
export function readPeriod(text = "month"): Period {
  const start = millisFrom(today())
  if (text === "day") return daysFrom(start, 1)
  if (text === "week") return daysFrom(start - daysSinceMonday(start) * DAY_MILLISECONDS, 7)
  if (text === "month") return boundsOf(currentPeriod())
  return new RegExp(MONTH).test(text) ? boundsOf(text) : readRange(text)
}

const daysSinceMonday = (start: number) => (new Date(start).getUTCDay() + 6) % 7

const daysFrom = (start: number, count: number): Period => ({
  start: isoFrom(start),
  end: isoFrom(start + count * DAY_MILLISECONDS),
})

const DAY = "(\\d{4}-\\d\\d-\\d\\d)(?:T00:00(?::00(?:\\.0+)?)?(?:Z|\\+00:00))?"
const RANGE = new RegExp(`^${DAY}/${DAY}$`)

function readRange(text: string): Period {
  const [, from = "", to = ""] = RANGE.exec(text) ?? []
  const count =
    isDay(from) && isDay(to) ? (millisFrom(to) - millisFrom(from)) / DAY_MILLISECONDS : 0
  if (count >= 1 && count <= MOST_DAYS) return daysFrom(millisFrom(from), count)
  const rule = `The value must be day, week, month, a month such as 2026-11, or 1 to ${MOST_DAYS} whole days in UTC, such as 2026-11-01/2026-11-15.`
  throw invalid("period", "invalid", rule)
}
