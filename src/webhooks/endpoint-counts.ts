import { STATUS_CODES } from "node:http"
import { and, type Column, eq, gte, inArray, lt, sql } from "drizzle-orm"
import { millis } from "../core/time"
import { HELD } from "../jobs/work-item"
import { STORED } from "../plans/stored-bytes"
import { bumpAll } from "../store/counters"
import { adder } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import type { AttemptOutcome } from "./receiver"
import { deliveries as rows, webhookHours, webhooks, webhookTotals } from "./tables"

const SHARDS = 8

type Totals = Pick<typeof webhookTotals.$inferSelect, "deliveries" | "open" | "held">

/** Which endpoint of which project. */
export interface OfEndpoint {
  project_id: string
  webhook_id: string
}

/** What counting needs to know of a delivery. */
export const OF_ENDPOINT = { project_id: rows.project_id, webhook_id: rows.webhook_id }

/** Held until its endpoint is active, and not by a name such as `held_after_restore`. */
export const waitsForEndpoint = ({ state, owner }: { state: number; owner: string | null }) =>
  state === HELD && owner === null

/**
 * Adds `each` to the totals of an endpoint, once for every row of it. Call it in the transaction that makes,
 * ends, holds or removes these deliveries.
 */
export const count = (tx: Tx, rows: OfEndpoint[], each: Partial<Totals>): Promise<void> =>
  countAll(
    tx,
    rows.map((row) => ({ ...row, ...each })),
  )

/** As `count` for changes of several kinds. */
export const countAll = (tx: Tx, changes: (OfEndpoint & Partial<Totals>)[]): Promise<void> =>
  addToTotals(
    tx,
    changes.map(({ project_id, webhook_id, deliveries = 0, open = 0, held = 0 }) => {
      return { project_id, webhook_id, deliveries, open, held }
    }),
  )

const addToTotals = adder(webhookTotals, ["webhook_id"], ["deliveries", "open", "held"], SHARDS)

/** Of these endpoints of one project. One that never had a delivery is not in the map. */
export async function totalsOf(db: Reader, ids: string[]): Promise<Map<string, Totals>> {
  if (ids.length === 0) return new Map()
  const { webhook_id, deliveries, open, held } = webhookTotals
  const summed = (column: Column) => sql<number>`sum(${column})`.mapWith(Number)
  const rows = await db
    .select({ webhook_id, deliveries: summed(deliveries), open: summed(open), held: summed(held) })
    .from(webhookTotals)
    .where(inArray(webhook_id, ids))
    .groupBy(webhook_id)
  return new Map(rows.map(({ webhook_id, ...totals }) => [webhook_id, totals]))
}

const NONE: Totals = { deliveries: 0, open: 0, held: 0 }

export const totalsOfOne = async (db: Reader, id: string): Promise<Totals> =>
  (await totalsOf(db, [id])).get(id) ?? NONE

/** A named hold took everything that was open: nothing waits for its endpoint alone any more. */
export const noneHeld = (tx: Tx) => tx.update(webhookTotals).set({ held: 0 })

/** Removes the totals of a deleted endpoint once it has no deliveries any more. */
export async function forgetDeleted(tx: Tx, id: string): Promise<void> {
  const [endpoint] = await tx.select({ id: webhooks.id }).from(webhooks).where(eq(webhooks.id, id))
  if (endpoint || (await totalsOfOne(tx, id)).deliveries > 0) return
  await tx.delete(webhookTotals).where(eq(webhookTotals.webhook_id, id))
}

/**
 * What each delivery counts beside a body of its own: its row with the headers and the answer of the last attempt,
 * which are cut, and its places in the indexes. The migration `stored_deliveries` has the same number.
 */
export const ROW_BYTES = 1024

export const storedBytes = sql<number>`${sql.raw(String(ROW_BYTES))} + coalesce(octet_length(${rows.body}), 0)`

/** What the body that a transform made of an event adds. */
export const bodyBytes = (body: string | null | undefined): number => Buffer.byteLength(body ?? "")

/** Adds to what projects store, in the transaction that writes or removes the deliveries. */
export const addStored = (tx: Tx, rows: { project_id: string; bytes: number }[]) =>
  bumpAll(
    tx,
    rows.map(({ project_id: owner, bytes: by }) => ({ owner, name: STORED.deliveries, by })),
  )

const HOUR_MILLISECONDS = 3_600_000

const hourOf = (epoch_ms: number): number => Math.floor(epoch_ms / HOUR_MILLISECONDS)

const WINDOW_HOURS = { "24h": 24, "7d": 7 * 24 }

type StatsWindow = keyof typeof WINDOW_HOURS

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
  return addToHours(tx, rows)
}

const addToHours = adder(webhookHours, ["webhook_id", "hour", "name"], ["count"], SHARDS)

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

/**
 * Statistics of the attempts that ended within the window, in whole hours: the hour in which the window
 * begins is part of it. `by_status` counts them by the status of the answer, or by the error without one.
 * `held` is the number of deliveries that are held now.
 */
export async function stats(db: Reader, id: string, window: StatsWindow) {
  const { webhook_id, hour, name, count } = webhookHours
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
  const { webhook_id, hour } = webhookHours
  const is_old = lt(hour, hourOf(millis()) - WINDOW_HOURS["7d"])
  const rows = store.read.select({ hour, webhook_id }).from(webhookHours).where(is_old)
  const [first] = await rows.orderBy(hour, webhook_id).limit(1)
  return first ? store.tx((tx) => removeHour(tx, first)) : 0
}

/** Removes one hour of one endpoint of a project. Returns how many rows went. */
export async function removeHourOf(tx: Tx, project_id: string): Promise<number> {
  const { webhook_id, hour } = webhookHours
  const theirs = eq(webhookTotals.project_id, project_id)
  const rows = tx.select({ hour, webhook_id }).from(webhookHours)
  const joined = rows.innerJoin(webhookTotals, eq(webhookTotals.webhook_id, webhook_id))
  const [first] = await joined.where(theirs).limit(1)
  return first ? removeHour(tx, first) : 0
}

async function removeHour(tx: Tx, of: { hour: number; webhook_id: string }): Promise<number> {
  const { webhook_id, hour } = webhookHours
  const one = and(eq(webhook_id, of.webhook_id), eq(hour, of.hour))
  return (await tx.delete(webhookHours).where(one).returning({ hour })).length
}
