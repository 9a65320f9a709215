import { STATUS_CODES } from "node:http"
import { and, eq, gte, lt, sql } from "drizzle-orm"
import { millis } from "../core/time"
import { adder } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import type { AttemptOutcome } from "./receiver"
import { webhookHours, webhookTotals } from "./tables"
import { SHARDS, totalsOfOne } from "./totals"

const HOUR_MILLISECONDS = 3_600_000

const hourOf = (epoch_ms: number): number => Math.floor(epoch_ms / HOUR_MILLISECONDS)

const WINDOW_HOURS = { "24h": 24, "7d": 7 * 24 }

export type StatsWindow = keyof typeof WINDOW_HOURS

/** The twelve steps of a decade, each a fifth more than the one before. */
const STEPS = [10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82]

/** Milliseconds, inclusive: an attempt counts for the first bound that it does not pass. */
export const BOUNDS = [
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9],
  ...[1, 10, 100, 1000].flatMap((factor) => STEPS.map((step) => step * factor)),
]

const LONGEST = 82_000

const OF_TIME = "ms:"

interface CountedAttempt {
  webhook_id: string
  outcome: Pick<AttemptOutcome, "response_status" | "error" | "latency_ms">
}

/** Counts attempts in the transaction that writes their results: one row for all that are alike. */
export function countAttempts(tx: Tx, list: CountedAttempt[]): Promise<void> {
  const hour = hourOf(millis())
  const rows = list.flatMap(({ webhook_id, outcome }) => [
    { webhook_id, hour, name: answerOf(outcome), count: 1 },
    { webhook_id, hour, name: OF_TIME + boundOf(outcome.latency_ms), count: 1 },
  ])
  return addTo(tx, rows)
}

const addTo = adder(webhookHours, ["webhook_id", "hour", "name"], ["count"], SHARDS)

/** Statuses that proxies in wide use made up. */
const OF_PROXIES = { first: 520, last: 530 }

/** A status that nobody defined counts for its class, so that no receiver makes rows without end. */
function answerOf({ response_status: status, error }: CountedAttempt["outcome"]): string {
  if (status === null) return error ?? ""
  const is_known = status in STATUS_CODES
  const is_of_proxies = status >= OF_PROXIES.first && status <= OF_PROXIES.last
  return is_known || is_of_proxies ? String(status) : `${Math.floor(status / 100)}xx`
}

const boundOf = (ms: number): number => BOUNDS.find((bound) => ms <= bound) ?? LONGEST

const { webhook_id, hour, name, count } = webhookHours

/**
 * Statistics of the attempts that ended within the window, in whole hours: the hour in which the window
 * begins is part of it. `by_status` counts them by the status of the answer, or by the error without one.
 * `held` is the number of deliveries that are held now.
 */
export async function stats(db: Reader, id: string, window: StatsWindow) {
  const since = hourOf(millis()) - WINDOW_HOURS[window]
  const rows = await db
    .select({ name, count: sql<number>`sum(${count})`.mapWith(Number) })
    .from(webhookHours)
    .where(and(eq(webhook_id, id), gte(hour, since)))
    .groupBy(name)
    .orderBy(name)
  const answers = rows.filter((row) => !row.name.startsWith(OF_TIME))
  const times = rows.flatMap((row) =>
    row.name.startsWith(OF_TIME)
      ? [{ bound: Number(row.name.slice(OF_TIME.length)), count: row.count }]
      : [],
  )
  times.sort((a, b) => a.bound - b.bound)
  const attempts = sum(answers)
  const success = sum(answers.filter((row) => row.name.startsWith("2")))
  return {
    attempts,
    success,
    failed: attempts - success,
    held: (await totalsOfOne(db, id)).held,
    p50_ms: timeAt(times, 0.5),
    p95_ms: timeAt(times, 0.95),
    by_status: Object.fromEntries(answers.map((row) => [row.name, row.count])),
  }
}

const sum = (list: { count: number }[]) => list.reduce((all, one) => all + one.count, 0)

/** As if the attempts of each step were spread evenly over it: at most a tenth away from the truth. */
function timeAt(times: { bound: number; count: number }[], share: number): number | null {
  let rank = Math.ceil(sum(times) * share)
  for (const { bound, count } of times) {
    if (rank <= count) {
      const from = BOUNDS[BOUNDS.indexOf(bound) - 1] ?? 0
      return Math.round(from + ((bound - from) * (rank - 0.5)) / count)
    }
    rank -= count
  }
  return null
}

/** Forgets one hour of one endpoint that no window reaches. Returns how many rows went. */
export async function purgeWebhookHours(store: Store): Promise<number> {
  const is_old = lt(hour, hourOf(millis()) - WINDOW_HOURS["7d"])
  const rows = store.read.select({ hour, webhook_id }).from(webhookHours).where(is_old)
  const [first] = await rows.orderBy(hour, webhook_id).limit(1)
  return first ? store.tx((tx) => removeHour(tx, first)) : 0
}

/** Removes one hour of one endpoint of a project. Returns how many rows went. */
export async function removeHourOf(tx: Tx, project_id: string): Promise<number> {
  const theirs = eq(webhookTotals.project_id, project_id)
  const rows = tx.select({ hour, webhook_id }).from(webhookHours)
  const joined = rows.innerJoin(webhookTotals, eq(webhookTotals.webhook_id, webhook_id))
  const [first] = await joined.where(theirs).limit(1)
  return first ? removeHour(tx, first) : 0
}

async function removeHour(tx: Tx, of: { hour: number; webhook_id: string }): Promise<number> {
  const one = and(eq(webhook_id, of.webhook_id), eq(hour, of.hour))
  return (await tx.delete(webhookHours).where(one).returning({ hour })).length
}
