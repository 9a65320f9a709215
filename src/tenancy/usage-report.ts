import { isoFrom, millis, millisFrom } from "../core/time"
import { LIMIT_OF, METRICS } from "../plans/metrics"
import { boundsOf } from "../plans/periods"
import type { Limits } from "../plans/plans"
import type { Metric } from "../plans/quotas"
import type { Reader } from "../store/store"
import {
  accountsOf,
  CHANNEL_METRICS,
  type Day,
  days,
  emptyTotals,
  type Totals,
  totals,
} from "./usage"

const DAY_MILLISECONDS = 86_400_000

export interface Used {
  used: number
  limit: number | null
  /** Of the limit, which all projects (and all free accounts of one person) share. */
  remaining: number | null
}

export interface Asked {
  account_id: string
  /** The whole account without it. */
  project_id: string | undefined
  period: string
  limits: Limits
  quota_subject: string
}

/** The Usage record of the contract. */
export async function report(db: Reader, asked: Asked) {
  const { account_id, project_id, period, limits, quota_subject } = asked
  const own = await days(db, { account_ids: [account_id], project_id, period })
  const sharing = await totals(db, { account_ids: await accountsOf(db, quota_subject), period })
  const used = emptyTotals()
  for (const { metric, value } of own) {
    if (metric in used) used[metric as keyof Totals] += value
  }
  return {
    period: boundsOf(period),
    ...shares(used, sharing, limits),
    api_requests: used.api_requests,
    by_day: byDay(own, period),
  }
}

export function shares(used: Totals, sharing: Totals, limits: Limits): Record<Metric, Used> {
  const entries = METRICS.map((metric) => {
    const limit = limits[LIMIT_OF[metric]]
    const remaining = limit === null ? null : Math.max(0, limit - sharing[metric])
    return [metric, { used: used[metric], limit, remaining }]
  })
  return Object.fromEntries(entries) as Record<Metric, Used>
}

/** Every day that has begun, also those on which nothing happened. */
function byDay(own: Day[], period: string) {
  return daysOf(period).map((date) => {
    const entries = CHANNEL_METRICS.map((metric) => {
      const mine = own.filter((one) => one.day === date && one.metric === metric)
      return [metric, mine.reduce((sum, { value }) => sum + value, 0)]
    })
    return { date, ...Object.fromEntries(entries) }
  })
}

/** The days of a month that have begun: `YYYY-MM-DD`, oldest first. */
export function daysOf(period: string): string[] {
  const { start, end } = boundsOf(period)
  const until = Math.min(millisFrom(end), millis())
  const all: string[] = []
  for (let at = millisFrom(start); at < until; at += DAY_MILLISECONDS) {
    all.push(isoFrom(at).slice(0, "YYYY-MM-DD".length))
  }
  return all
}
