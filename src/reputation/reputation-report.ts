import { settings } from "../core/config"
import { isoFrom, millis } from "../core/time"
import type { ReputationCounts } from "../identity/account-reputation"
import { sendingStatusOf } from "../identity/caller"
import type { SendingStatus } from "../identity/tables"
import { type AnyWorkRows, heldCount } from "../jobs/holds"
import { readHeavy } from "../store/heavy-reads"
import type { HeavyRead, Reader } from "../store/store"
import { find } from "../tenancy/accounts"
import { read, standingOf, usualHour } from "./evaluate"
import { type ComplaintHold, heldOf, holdName } from "./gate"
import {
  byName,
  type CountedHour,
  eachCount,
  hourOf,
  hoursOf,
  startOfHour,
  sumOf,
} from "./hour-counts"
import {
  type AccountStanding,
  decide,
  firstHour,
  less,
  ratesOf,
  statusOfRates,
  type Thresholds,
  thresholds,
  warningOf,
} from "./sending-status"

const DAY_HOURS = 24
const HISTORY_DAYS = 30

/**
 * The Reputation record: the status and the numbers of the account, and the names that stand out. Names and
 * holds are those of the project, or of all without it.
 */
export async function report(
  db: Reader,
  rows: AnyWorkRows,
  asked: { account_id: string; project_id: string | undefined },
) {
  const limits = thresholds()
  const at_ms = millis()
  const account = await find(db, asked.account_id)
  const standing = standingOf(account)
  const readings = await read(db, account, limits, at_ms)
  const { counts, hours, hour_sent } = readings
  const { reputation } = standing
  const { sending_status: status, sending_status_reason: reason } = sendingStatusOf(account)
  const is_enforced = settings()["reputation.enforced"]
  const { base } = reputation
  const since = firstHour(at_ms, limits.window_ms)
  const holds = await heldOf(db, asked)
  const { held, names } = await readHeavy(db, asked.account_id, async (read) => ({
    held: await heldWork(read, holds, rows),
    names: {
      domain: await read((reader) => byName(reader, { ...asked, dimension: "domain", since })),
      tag: await read((reader) => byName(reader, { ...asked, dimension: "tag", since })),
      template: await read((reader) => byName(reader, { ...asked, dimension: "template", since })),
    },
  }))
  return {
    status,
    reason,
    changed_at: reputation.changed_at,
    rejected_share: reputation.rejected_share,
    low_since: reputation.below_since,
    enforced: is_enforced,
    would_be: is_enforced ? null : statusOfRates(standing, readings, limits, at_ms),
    window_days: limits.window_ms / 86_400_000,
    window_start: reputation.window_start,
    ...counts,
    ...ratesOf(counts),
    hour_sent,
    usual_hour: await usualHour(db, account, at_ms),
    thresholds: toResponse(limits),
    warning: warningOf(standing, readings, limits),
    forecast: forecast({ ...standing, hours, counts, base }, limits, at_ms),
    held,
    by_domain: names.domain.map(({ name: domain, ...one }) => ({ domain, ...rated(one) })),
    by_tag: names.tag.map(({ name: tag, ...one }) => ({ tag, ...rated(one) })),
    by_template: names.template.map(({ name: template_id, ...one }) => ({
      template_id,
      ...rated(one),
    })),
    history: await history(db, asked.account_id, at_ms),
  }
}

const rated = <Named extends ReputationCounts>(one: Named) => ({ ...one, ...ratesOf(one) })

const toResponse = ({ throttled, frozen, held, recovery }: Thresholds) => ({
  throttled,
  frozen,
  held,
  recovery: { below_share: recovery.share, after_hours: recovery.after_ms / 3_600_000 },
})

async function heldWork(read: HeavyRead, holds: ComplaintHold[], rows: AnyWorkRows) {
  const found = []
  for (const { id, dimension, name, project_id, complaint_rate, held_at } of holds) {
    const [counted] = await read((reader) => heldCount(reader, rows, holdName(id)))
    found.push({
      tag: dimension === "tag" ? name : null,
      template_id: dimension === "template" ? name : null,
      project_id,
      complaint_rate,
      held_at: held_at ?? "",
      waiting: counted?.n ?? 0,
    })
  }
  return found
}

/** Every day, also those without mail. */
async function history(db: Reader, account_id: string, at_ms: number) {
  const today = Math.floor(hourOf(at_ms) / DAY_HOURS)
  const first = today - HISTORY_DAYS + 1
  const hours = await hoursOf(db, account_id, first * DAY_HOURS)
  const days = Map.groupBy(hours, ({ hour }) => Math.floor(hour / DAY_HOURS))
  return Array.from({ length: HISTORY_DAYS }, (_, at) => dayOf(first + at, days.get(first + at)))
}

function dayOf(day: number, hours: CountedHour[] = []) {
  const sum = sumOf(hours)
  const date = isoFrom(startOfHour(day * DAY_HOURS)).slice(0, "YYYY-MM-DD".length)
  return { date, sent: sum.sent, ...ratesOf(sum) }
}

/** How far ahead is looked. */
const HORIZON_HOURS = 7 * DAY_HOURS

interface Forecast {
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
    const expected_at = is_other ? isoFrom(at) : null
    return { status, expected_at, bounce_rate, complaint_rate, ...left }
  }
  throw new Error("a forecast looks at no hour")
}

/** The mean of the last day. */
function perHour(hours: CountedHour[], present: number): ReputationCounts {
  const sum = sumOf(hours.filter(({ hour }) => hour > present - DAY_HOURS))
  return eachCount((name) => sum[name] / DAY_HOURS)
}

/** What the window will hold then: the hours that are still in it, and hours like those of the last day. */
function windowAt(
  { hours, base }: Foreseen,
  usual: ReputationCounts,
  { at, present, limits }: { at: number; present: number; limits: Thresholds },
) {
  const first = firstHour(at, limits.window_ms)
  const sum = sumOf(hours.filter(({ hour }) => hour >= first))
  const known = (hours[0]?.hour ?? 0) >= first ? less(sum, base) : sum
  const more = hourOf(at) - Math.max(present, first - 1)
  return eachCount((name) => known[name] + more * usual[name])
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
