import { isoFrom } from "../core/time"
import type { ReputationCounts } from "../identity/account-reputation"
import type { SendingStatus } from "../identity/tables"
import { addUp, type CountedHour, hourOf, NONE, startOfHour } from "./hour-counts"
import { type AccountStanding, decide } from "./sending-status"
import { firstHour, type Thresholds } from "./thresholds"
import { less } from "./window"

const DAY_HOURS = 24

/** How far ahead is looked. */
const HORIZON_HOURS = 7 * DAY_HOURS

export interface Forecast {
  /** The next sending status, if mail goes on as in the last day; null where it stays. */
  status: SendingStatus | null
  /** The first hour in which it holds. */
  expected_at: string | null
  /** Of the window, by then or at the end of the days that are looked at. */
  bounce_rate: number
  complaint_rate: number
  /** More bounces and complaints, all at once, that the next worse status would need; null after the last. */
  bounces_left: number | null
  complaints_left: number | null
}

interface Foreseen extends AccountStanding {
  /** Since the begin of the window; oldest first. */
  hours: CountedHour[]
  /** Of the window. */
  counts: ReputationCounts
  base: ReputationCounts | null
}

/** What comes of an account that goes on as in the last 24 hours, hour by hour, for seven days. */
export function forecast(seen: Foreseen, limits: Thresholds, at_ms: number): Forecast {
  const left = leftOf(seen, limits)
  const present = hourOf(at_ms)
  const usual = perHour(seen.hours, present)
  let standing: AccountStanding = seen
  for (let ahead = 1; ahead <= HORIZON_HOURS; ahead++) {
    const at = startOfHour(present + ahead)
    const counts = windowAt(seen, usual, { at, present, limits })
    const decision = decide(standing, { counts, hour_sent: 0, usual_hour: null }, limits, at)
    standing = decision
    if (decision.status === seen.status && ahead < HORIZON_HOURS) continue
    const { bounce_rate, complaint_rate } = decision.reputation
    const is_other = decision.status !== seen.status
    const status = is_other ? decision.status : null
    return {
      status,
      expected_at: is_other ? isoFrom(at) : null,
      bounce_rate,
      complaint_rate,
      ...left,
    }
  }
  throw new Error("a forecast looks at no hour")
}

/** The mean of the last day. */
function perHour(hours: CountedHour[], present: number): ReputationCounts {
  const sum = { ...NONE }
  for (const one of hours) if (one.hour > present - DAY_HOURS) addUp(sum, one)
  const mean = (value: number) => value / DAY_HOURS
  return {
    sent: mean(sum.sent),
    delivered: mean(sum.delivered),
    bounced: mean(sum.bounced),
    complained: mean(sum.complained),
  }
}

interface Ahead {
  at: number
  present: number
  limits: Thresholds
}

/** What the window will hold then: the hours that are still in it, and hours like those of the last day. */
function windowAt(
  { hours, base }: Foreseen,
  usual: ReputationCounts,
  { at, present, limits }: Ahead,
) {
  const first = firstHour(at, limits.window_ms)
  const sum = { ...NONE }
  for (const one of hours) if (one.hour >= first) addUp(sum, one)
  const known = (hours[0]?.hour ?? 0) >= first ? less(sum, base) : sum
  const more = hourOf(at) - Math.max(present, first - 1)
  return {
    sent: known.sent + more * usual.sent,
    delivered: known.delivered + more * usual.delivered,
    bounced: known.bounced + more * usual.bounced,
    complained: known.complained + more * usual.complained,
  }
}

/** How many more the next step takes, each of which is a sent email, too. */
function leftOf({ status, counts }: Foreseen, limits: Thresholds) {
  if (status === "frozen") return { bounces_left: null, complaints_left: null }
  const step = limits[status === "active" ? "throttled" : "frozen"]
  const bounces =
    (step.bounce_rate * counts.sent - counts.bounced) / Math.max(1e-9, 1 - step.bounce_rate)
  const fills = step.min_sent - counts.sent // all of them bounces: the fewest that can reach the least number
  const complaints = step.complaint_rate * Math.max(counts.sent, step.min_sent) - counts.complained
  const up = (value: number) => Math.max(0, Math.ceil(value - 1e-9))
  return { bounces_left: up(Math.max(bounces, fills)), complaints_left: up(complaints) }
}
