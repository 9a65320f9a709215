import { and, eq, inArray, isNull, lte, ne, or, type SQL } from "drizzle-orm"
import { isoFrom, millis, now } from "../core/time"
import { DEAD, hasEnded, OVER, type Settled } from "../jobs/work-item"
import { forUpdate, idList, isAmong } from "../store/columns"
import { prepared, updater } from "../store/statements"
import type { Tx } from "../store/store"
import type { ClaimedDelivery } from "./delivery-rows"
import { countAll, countAttempts, waitsForEndpoint } from "./endpoint-counts"
import { heldUntil } from "./held"
import type { AttemptOutcome } from "./receiver"
import { disable, WARN_AT, warn } from "./status"
import {
  type AttemptEntry,
  type DeliveryStatus,
  deliveries,
  STATE_OF,
  type WebhookRow,
  webhooks,
} from "./tables"

/** The `last_*` times of an endpoint are exact to the second: a busy one is not written for each delivery. */
const FRESH_MILLISECONDS = 1000

export interface EndedAttempt {
  outcome: AttemptOutcome
  /** The endpoint's transform gave no JSON: the plain envelope was sent. */
  transform_failed: boolean
  /** It failed, but a later attempt of the endpoint had succeeded before: it does not count. */
  is_outdone?: boolean
}

type SettledDelivery = Settled<ClaimedDelivery, EndedAttempt>
type Ended = SettledDelivery & { end: EndedAttempt }

/**
 * Writes the results of attempts: deliveries, the counters of their endpoints and the breaker,
 * together, in the order in which they ended. `failures` in a row disable an endpoint.
 */
export async function settleDeliveries(
  tx: Tx,
  list: readonly SettledDelivery[],
  failures: number,
): Promise<void> {
  const ended = list.filter((one): one is Ended => one.end !== undefined)
  await write(tx, list.filter(({ end }) => end === undefined).map(unattempted), writeUnattempted)
  await countAttempts(
    tx,
    ended.map(({ row, end }) => ({ webhook_id: row.webhook_id, ...end })),
  )
  const failing = new Set<string>()
  for (const { row, end } of ended) if (end.outcome.error !== null) failing.add(row.webhook_id)
  await settleSucceeding(
    tx,
    ended.filter(({ row }) => !failing.has(row.webhook_id)),
  )
  await settleFailing(
    tx,
    ended.filter(({ row }) => failing.has(row.webhook_id)),
    failures,
  )
}

async function settleSucceeding(tx: Tx, list: Ended[]) {
  if (list.length === 0) return
  await write(
    tx,
    list.map((ended) => rowOf(ended, "success")),
    writeRows,
  )
  const ids = [...new Set(list.map(({ row }) => row.webhook_id))]
  const old = isoFrom(millis() - FRESH_MILLISECONDS)
  // Looked at first, because hardly ever there is anything to write.
  const stale = await selectStale(tx, { ids, old })
  if (stale.length === 0) return
  const at = now()
  const theirs = inArray(webhooks.id, stale.map(({ id }) => id).sort())
  await tx
    .update(webhooks)
    .set({ consecutive_failures: 0, last_success_at: at, last_triggered_at: at })
    .where(and(theirs, isStale(old)))
}

const isStale = (old: string | SQL) => {
  const { consecutive_failures, last_success_at } = webhooks
  return or(ne(consecutive_failures, 0), isNull(last_success_at), lte(last_success_at, old))
}

const selectStale = prepared({ ids: idList, old: webhooks.last_success_at }, (tx: Tx, slot) =>
  tx
    .select({ id: webhooks.id })
    .from(webhooks)
    .where(and(isAmong(tx, webhooks.id, slot.ids), isStale(slot.old))),
)

/** Endpoints with failures among their attempts: one after the other, in the order of the ends. */
async function settleFailing(tx: Tx, list: Ended[], failures: number) {
  if (list.length === 0) return
  const byEndpoint = Map.groupBy(list, ({ row }) => row.webhook_id)
  const ids = [...byEndpoint.keys()].sort()
  const query = tx.select().from(webhooks).where(inArray(webhooks.id, ids)).orderBy(webhooks.id)
  const found = new Map((await forUpdate(query)).map((webhook) => [webhook.id, webhook]))
  for (const id of ids) {
    const webhook = found.get(id)
    const ends = byEndpoint.get(id) ?? []
    if (webhook) await settleEndpoint(tx, webhook, ends, failures)
    else await write(tx, ends.map(lastRowOf), writeRows) // deleted meanwhile
  }
}

async function settleEndpoint(tx: Tx, before: WebhookRow, ends: Ended[], failures: number) {
  const { warnings, breaker, ...counters } = count(before, ends, failures)
  const last = ends.at(-1)?.end.outcome
  const unresolved_at = last?.error === "dns" ? last.at : null
  await tx
    .update(webhooks)
    .set({ ...counters, unresolved_at })
    .where(eq(webhooks.id, before.id))
  for (const consecutive_failures of warnings) {
    await warn(tx, { ...before, consecutive_failures }, null)
  }
  const is_active = before.status === "active" && breaker === null
  await write(
    tx,
    ends.map((ended) => nextRowOf(ended, is_active ? before.retry_policy.intervals : undefined)),
    writeRows,
  )
  if (breaker === null) return
  // As the counter stood when the breaker opened: attempts that ran beside it may have raised it.
  const { reason, consecutive_failures } = breaker
  await disable(tx, { ...before, consecutive_failures }, reason)
}

/** What the ends mean for their endpoint. Tests and attempts by hand count no failure. A 2xx clears. */
function count(before: WebhookRow, ends: Ended[], failures: number) {
  const { consecutive_failures, last_failure_at, last_success_at, last_triggered_at } = before
  const after = { consecutive_failures, last_failure_at, last_success_at, last_triggered_at }
  const warnings: number[] = []
  let breaker: { reason: "circuit_breaker" | "gone"; consecutive_failures: number } | null = null
  for (const { row, end } of ends) {
    const { error, at } = end.outcome
    after.last_triggered_at = at
    if (error === null) {
      after.consecutive_failures = 0
      after.last_success_at = at
      continue
    }
    after.last_failure_at = at
    const counts = !row.by_hand && row.trigger !== "test" && !end.is_outdone
    if (counts) after.consecutive_failures += 1
    const stands = after.consecutive_failures
    if (before.status !== "active" || breaker) continue
    if (error === "gone") breaker = { reason: "gone", consecutive_failures: stands }
    else if (counts && stands >= failures)
      breaker = { reason: "circuit_breaker", consecutive_failures: stands }
    else if (counts && WARN_AT.includes(stands)) warnings.push(stands)
  }
  return { ...after, warnings, breaker }
}

/** `intervals`: of the retry policy; undefined while the endpoint is disabled. */
function nextRowOf(ended: Ended, intervals: number[] | undefined) {
  const { row, end } = ended
  const attempts = row.attempts + 1
  if (end.outcome.error === null || attempts >= row.max_attempts) return lastRowOf(ended)
  if (!intervals) return rowOf(ended, "held", heldUntil())
  const wait = waitSeconds(intervals, attempts, end.outcome)
  return rowOf(ended, "failed", isoFrom(millis() + wait * 1000))
}

const lastRowOf = (ended: Ended) =>
  rowOf(ended, ended.end.outcome.error === null ? "success" : "exhausted")

/** Seconds after the attempt of this number, from 1: its interval ±10 %, or what was asked for. */
function waitSeconds(
  intervals: readonly number[],
  attempts: number,
  { retry_after_seconds }: Pick<AttemptOutcome, "retry_after_seconds">,
): number {
  const interval = intervals[Math.min(attempts, intervals.length) - 1] ?? 0
  const jittered = interval * (0.9 + Math.random() * 0.2)
  return Math.max(jittered, retry_after_seconds ?? 0)
}

function rowOf({ row, end }: Ended, status: DeliveryStatus, run_at = now()) {
  const { outcome } = end
  const { at, error, response_status, latency_ms } = outcome
  const attempts = row.attempts + 1
  const entry: AttemptEntry = { attempt: attempts, at, response_status, error, latency_ms }
  return {
    ...row,
    status,
    state: STATE_OF[status],
    run_at,
    owner: null,
    lease_until: null,
    attempts,
    by_hand: false,
    url: outcome.url,
    request_headers: outcome.request_headers,
    response_headers: outcome.response_headers,
    last_response_body: outcome.response_body,
    last_response_status: response_status,
    last_error: error ?? (end.transform_failed ? ("transform_failed" as const) : null),
    latency_ms,
    attempt_log: [...row.attempt_log, entry],
    first_attempted_at: row.first_attempted_at ?? at,
    last_attempted_at: at,
  }
}

/** A delivery that was not attempted: it waits, or nothing is left to send. */
function unattempted({ row, after }: SettledDelivery) {
  if (after.state !== OVER) return { ...row, ...after }
  return { ...row, ...after, state: DEAD, run_at: now(), status: "exhausted" as const }
}

interface Written extends Pick<ClaimedDelivery, "id" | "project_id" | "webhook_id"> {
  state: number
  owner: string | null
}

/** Writes rows of open deliveries, and counts those that ended, or are held now. */
async function write<Row extends Written>(
  tx: Tx,
  rows: Row[],
  into: (tx: Tx, rows: Row[]) => Promise<Set<unknown>>,
) {
  const written = await into(tx, rows)
  const changed = rows.filter(({ id }) => written.has(id))
  await countAll(tx, changed.flatMap(changedTotals))
}

function changedTotals({ project_id, webhook_id, ...row }: Written) {
  const open = hasEnded(row) ? -1 : 0
  const held = waitsForEndpoint(row) ? 1 : 0
  return open + held === 0 ? [] : [{ project_id, webhook_id, deliveries: 0, open, held }]
}

const WORK_COLUMNS = ["status", "state", "run_at", "attempt", "owner", "lease_until"] as const

// A retry by hand in the moment of the claim raised `max_attempts`: this attempt did not answer it.
const where: ("id" | "max_attempts")[] = ["id", "max_attempts"]

const writeUnattempted = updater(deliveries, { where, set: [...WORK_COLUMNS], clear: [] })

const writeRows = updater(deliveries, {
  where,
  set: [
    ...WORK_COLUMNS,
    "attempts",
    "by_hand",
    "url",
    "request_headers",
    "response_headers",
    "last_response_body",
    "last_response_status",
    "last_error",
    "latency_ms",
    "attempt_log",
    "first_attempted_at",
    "last_attempted_at",
  ],
  clear: [],
  quiet: true, // see `jobs/in-flight.ts`
})
