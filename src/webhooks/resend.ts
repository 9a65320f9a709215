import { and, eq, gte, inArray, isNotNull, ne, type SQL, sql } from "drizzle-orm"
import type { SQLiteColumn } from "drizzle-orm/sqlite-core"
import { conflict } from "../core/errors"
import { firstEventIdAt } from "../core/ids"
import { millisFrom, now } from "../core/time"
import { isTest } from "../events/emit"
import * as feed from "../events/feed"
import { events } from "../events/tables"
import type { Caller } from "../identity/caller"
import { enqueue, type JobHandler, type JobKind } from "../jobs/jobs"
import * as longJob from "../jobs/long-jobs"
import { LEASED, PRIORITIES } from "../jobs/work-item"
import { idsBetween, SKEW_MS, timesBetween } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { named, oneMoreAttempt } from "./deliveries"
import { backlogsOf } from "./delivery-picker"
import { deliveryWakeUp, isHeldByEndpoint, notInFlight } from "./delivery-rows"
import { count, OF_ENDPOINT } from "./endpoint-counts"
import { releaseHeld } from "./held"
import { deliveryOf, endpointsOf, plan, subscribesTo } from "./route-events"
import { deliveries, webhooks as endpoints, type WebhookRow } from "./tables"
import * as webhooks from "./webhooks"

/** Deliveries of one transaction, so that other transactions run between two batches. */
const BATCH = 200

/** Rows that one batch looks at, because any number of them may be of other types or states. */
const MOST_LOOKED_AT = 1000

export interface ResendRange {
  /** Exact types; none means all. */
  event_types: string[]
  since: string | null
  /** Exclusive. */
  until: string | null
}

interface ResendPayload extends ResendRange {
  job_id: string
  project_id: string
  webhook_id: string
  /** By hand (`retry`), or as replays: held deliveries, failed ones, or all stored events. */
  what: "retry" | "held" | "failed" | "all"
  status: ("failed" | "exhausted")[]
  until: string
  after: string | null
}

/** Each delivery of these states gets one more attempt at once. None of them counts for the breaker. */
export async function bulkRetry(
  tx: Tx,
  caller: Caller,
  id: string,
  { status, ...span }: ResendRange & { status: ("failed" | "exhausted")[] },
): Promise<longJob.Job> {
  const webhook = await webhooks.forUpdate(tx, caller.project_id, id)
  return start(tx, caller, webhook, "bulk_retry", { what: "retry", status, ...span })
}

/**
 * Sends events again as if they had just happened: those held for the endpoint, those whose
 * delivery failed, or all that it would take today. Throws 409 unless the endpoint is active.
 */
export async function replay(
  tx: Tx,
  caller: Caller,
  id: string,
  { status: what, ...span }: ResendRange & { status: "held" | "failed" | "all" },
): Promise<longJob.Job> {
  const webhook = await webhooks.forUpdate(tx, caller.project_id, id)
  if (webhook.status !== "active") {
    const message = "The endpoint is disabled. Enable it first, and then send its events again."
    conflict("not_active", id, message)
  }
  const status: ResendPayload["status"] = what === "failed" ? ["failed", "exhausted"] : []
  return start(tx, caller, webhook, "replay", { what, status, ...span })
}

interface Resending {
  /** This endpoint alone gets it, whatever it subscribes to. */
  only: string | null
  /** Of the event, where its stored data has grown old. Endpoints with a transform get the stored one. */
  data?: Record<string, unknown> | undefined
}

/**
 * Plans one more delivery of an event, under its own id, to every endpoint that would get it today.
 * Returns the deliveries.
 */
export async function resendEvent(tx: Tx, event: feed.Event, { only, data }: Resending) {
  const all = await endpointsOf(tx, event.project_id)
  const chosen = all.filter((endpoint) =>
    only === null ? subscribesTo(endpoint, event) : endpoint.id === only,
  )
  const transformed = data && (await transforming(tx, event.project_id))
  const text = data && JSON.stringify(feed.envelopeOf({ ...event, data }))
  const planned = chosen.map((endpoint) => ({
    ...deliveryOf(endpoint, event, "replay"),
    ...(text && !transformed?.has(endpoint.id) && { body: text }),
  }))
  await plan(tx, planned)
  const ids = planned.map(({ id }) => id)
  return named(tx, ids)
}

async function transforming(db: Reader, project_id: string): Promise<Set<string>> {
  const { id, transform } = endpoints
  const ours = and(eq(endpoints.project_id, project_id), isNotNull(transform))
  const rows = await db.select({ id }).from(endpoints).where(ours)
  return new Set(rows.map((row) => row.id))
}

/** Releases the held deliveries that did not leave with the activation of their endpoint. */
export async function replayRest(tx: Tx, caller: Caller, webhook: WebhookRow) {
  const everything = { event_types: [], since: null, until: null }
  await start(tx, caller, webhook, "replay", { what: "held", status: [], ...everything })
}

type Work = Pick<ResendPayload, "what" | "status"> & ResendRange

async function start(
  tx: Tx,
  caller: Caller,
  webhook: WebhookRow,
  verb: "bulk_retry" | "replay",
  work: Work,
): Promise<longJob.Job> {
  const { project_id } = caller
  const { id } = webhook
  // Later deliveries are left out, or the job would follow its own attempts.
  const until = work.until !== null && work.until < now() ? work.until : now()
  const whole = { ...work, until, project_id, webhook_id: id, after: null }
  // Of more rows than one look has, the total is unknown until the end.
  const { ids, after } = await look(tx, walkOf(tx, whole), null, MOST_LOOKED_AT)
  const total = after === null ? ids.length : 0
  const job = await longJob.begin(tx, project_id, { type: `webhook.${verb}`, total })
  await enqueue(tx, webhookResend, { payload: { ...whole, job_id: job.id }, project_id })
  await webhooks.log(tx, caller, webhook, verb, { after: { ...work, until } })
  return job
}

/** Each batch is a job of its own, which the previous one enqueues as it ends: none runs twice. */
export const webhookResend: JobKind<ResendPayload> = {
  name: "webhooks.resend",
  schedule: (attempt, age) => (age > 86_400 ? undefined : Math.min(5 * attempt, 300)),
}

export const resend: JobHandler<ResendPayload> = {
  run: async (payload) => ({ done: (tx) => step(tx, payload) }),
  onDead: async (tx, { project_id, job_id }, message) => {
    await longJob.finish(tx, project_id, job_id, { error: { code: "internal_error", message } })
  },
}

async function step(tx: Tx, payload: ResendPayload): Promise<void> {
  const { project_id, webhook_id, job_id, what } = payload
  const end = (ending: longJob.Ending) => longJob.finish(tx, project_id, job_id, ending)
  const webhook = await webhooks.lookup(tx, project_id, webhook_id)
  if (!webhook)
    return end({ error: { code: "webhook_not_found", message: "The endpoint was deleted." } })
  if (what !== "retry" && webhook.status !== "active") {
    return end({
      error: { code: "conflict", message: "The endpoint was disabled while the job was running." },
    })
  }
  if (!(await longJob.progress(tx, project_id, job_id))) return
  const { done, failed = 0, after } = await resendBatch(tx, webhook, payload)
  if (done + failed > 0) await longJob.progress(tx, project_id, job_id, { done, failed })
  if (after !== null) {
    const next = { payload: { ...payload, after }, project_id, priority: PRIORITIES.bulk }
    return enqueue(tx, webhookResend, next)
  }
  // The count of the beginning also had what the endpoint would not take and what others changed meanwhile.
  const { progress } = await longJob.find(tx, project_id, job_id)
  await longJob.progress(tx, project_id, job_id, { total: progress.done + progress.failed })
  return end({})
}

async function resendBatch(
  tx: Tx,
  webhook: WebhookRow,
  payload: ResendPayload,
): Promise<{ done: number; failed?: number; after: string | null }> {
  const { ids, after } = await look(tx, walkOf(tx, payload), payload.after, BATCH)
  if (ids.length === 0) return { done: 0, after }
  if (payload.what === "held") return { done: await releaseHeld(tx, webhook, ids, BATCH), after }
  const sent =
    payload.what === "all" ? await replayEvents(tx, webhook, ids) : await retryAll(tx, payload, ids)
  return { ...sent, after }
}

interface Walk {
  rows: typeof deliveries | typeof events
  where: SQL | undefined
  /** Its columns behind that. The last one is the id. */
  key: [...SQLiteColumn[], SQLiteColumn]
  filter: SQL | undefined
}

/** The next rows that the filter lets through, at most `most`, and the cursor behind what was looked at. */
async function look(
  tx: Tx,
  { rows, where, key, filter }: Walk,
  after: string | null,
  most: number,
) {
  const columns = sql.join(key, sql`, `)
  const values = (after || "").split(" ").map((value, at) => sql.param(value, key[at]))
  const beyond = after ? sql`(${columns}) > (${sql.join(values, sql`, `)})` : undefined
  const found = await tx
    .select({
      id: rows.id as SQLiteColumn,
      first: key[0] as SQLiteColumn,
      is_wanted: sql`CASE WHEN ${filter} THEN 1 ELSE 0 END`.mapWith(Number),
    })
    .from(rows as typeof deliveries)
    .where(and(where, beyond))
    .orderBy(...key)
    .limit(MOST_LOOKED_AT)
  const wanted = found.filter(({ is_wanted }) => is_wanted === 1)
  const chosen = wanted.slice(0, most)
  const is_end = found.length < MOST_LOOKED_AT && chosen.length === wanted.length
  const last = chosen.length < wanted.length ? chosen.at(-1) : found.at(-1)
  const cursor = last && (key.length === 1 ? `${last.id}` : `${last.first} ${last.id}`)
  return {
    ids: chosen.map(({ id }) => id as string),
    after: is_end ? null : (cursor ?? null),
  }
}

async function retryAll(tx: Tx, payload: ResendPayload, chosen: string[]) {
  const { what, status } = payload
  const { id, project_id, event_id, body } = deliveries
  const has_body = sql<number>`CASE WHEN ${body} IS NULL THEN 0 ELSE 1 END`
  const rows = await tx
    .select({ id, has_body, event: events.id })
    .from(deliveries)
    .leftJoin(events, eq(events.id, event_id))
    .where(and(eq(project_id, payload.project_id), inArray(id, chosen)))
  const sendable = rows.filter(({ has_body, event }) => Number(has_body) === 1 || event !== null)
  const ids = sendable.map((row) => row.id)
  const changes = oneMoreAttempt(what === "retry" ? "manual" : "replay")
  let done = 0
  for (const one of status) {
    // A delivery that was claimed or changed meanwhile is left alone.
    const is_such = and(eq(deliveries.status, one), ne(deliveries.state, LEASED), notInFlight(tx))
    const still = and(inArray(id, ids), is_such)
    const changed = await tx.update(deliveries).set(changes).where(still).returning(OF_ENDPOINT)
    if (one === "exhausted") await count(tx, changed, { open: 1 })
    tx.afterCommit(() => backlogsOf(tx).planned(changed.map(({ webhook_id }) => webhook_id)))
    done += changed.length
  }
  if (done > 0) tx.afterCommit(deliveryWakeUp(tx).wakeUp)
  return { done, failed: rows.length - done }
}

/**
 * Plans those of these events that the endpoint would take today, also those from before it was made.
 * An open delivery is left alone, a held one is released, and all other events are sent anew.
 */
async function replayEvents(tx: Tx, webhook: WebhookRow, ids: string[]) {
  const asked = and(eq(events.project_id, webhook.project_id), inArray(events.id, ids))
  const place = new Map(ids.map((id, at) => [id, at]))
  const placeOf = ({ id }: { id: string }) => place.get(id) ?? 0
  // Sorted here, or the index of the feed might be walked.
  const rows = await tx.select().from(events).where(asked)
  const chosen = rows
    .sort((a, b) => placeOf(a) - placeOf(b))
    .filter((event) => subscribesTo(webhook, event) && !isTest(event))
  const { id, event_id, status, webhook_id } = deliveries
  const theirs = and(
    eq(webhook_id, webhook.id),
    inArray(
      event_id,
      chosen.map((event) => event.id),
    ),
    inArray(status, ["pending", "failed", "held"]),
  )
  const open = await tx.select({ id, event_id, status }).from(deliveries).where(theirs)
  const known = new Set(open.map((row) => row.event_id))
  const fresh = chosen.filter((event) => !known.has(event.id))
  await plan(
    tx,
    fresh.map((event) => deliveryOf(webhook, event, "replay")),
  )
  const held = open.flatMap((row) => (row.status === "held" ? row.id : []))
  const released = await releaseHeld(tx, webhook, held, held.length)
  return { done: fresh.length + released }
}

type Query = Omit<ResendPayload, "job_id">

function walkOf(db: Reader, query: Query): Walk {
  if (query.what === "all") return eventsOf(db, query)
  const { id, project_id, webhook_id, status, run_at, created_at, event_type } = deliveries
  const theirs = eq(webhook_id, query.webhook_id)
  const is_held = query.what === "held"
  return {
    rows: deliveries,
    where: and(theirs, is_held ? isHeldByEndpoint : idsBetween(id, rangeOf(query))),
    key: is_held ? [run_at, id] : [id],
    filter: and(
      eq(project_id, query.project_id),
      is_held ? undefined : inArray(status, query.status),
      isWithin(created_at, event_type, query),
    ),
  }
}

function eventsOf(db: Reader, query: Query): Walk {
  const { id, project_id, position } = events
  // On SQLite the index is in the order of ids, so it skips the older rows.
  const from = query.since !== null && db.isAlone ? fromId(query.since) : undefined
  return {
    rows: events,
    where: and(eq(project_id, query.project_id), from),
    key: [position, id],
    filter: isWithin(events.created_at, events.type, query),
  }
}

const rangeOf = ({ since, until }: Query) => ({ after: since ?? undefined, before: until })

const isWithin = (created_at: SQLiteColumn, type: SQLiteColumn, query: Query) =>
  and(
    timesBetween(created_at, rangeOf(query)),
    query.event_types.length === 0 ? undefined : inArray(type, query.event_types),
  )

const fromId = (since: string) =>
  and(eq(events.position, 0), gte(events.id, firstEventIdAt(millisFrom(since) - SKEW_MS)))
