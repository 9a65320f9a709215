import { and, eq, gte, type SQL, sql } from "drizzle-orm"
import { fail } from "../core/errors"
import { firstIdAt, isUuid } from "../core/ids"
import { millisFrom, now } from "../core/time"
import { envelopeOf } from "../events/feed"
import { events } from "../events/tables"
import type { Page, Window } from "../http/page"
import { held } from "../store/locks"
import type { Reader, Tx } from "../store/store"
import { newestFirst } from "../store/stretch"
import { ringPlanned } from "./bell"
import { isInHand } from "./in-hand"
import { type DeliveryRow, deliveryRecord, summary } from "./record"
import { type DeliveryStatus, deliveries } from "./tables"

/** An id is made a little before or after the row's time is read. */
const SKEW_MILLISECONDS = 60_000

export interface Filter {
  status: DeliveryStatus | undefined
  event_type: string | undefined
  event_id: string | undefined
  /** Created then or later. */
  since: string | undefined
}

interface Place {
  project_id: string
  webhook_id: string
}

/** Newest first. */
export async function list(db: Reader, place: Place, filter: Filter, window: Window) {
  const wanted = matching(place, filter)
  const { where, order } = newestFirst(deliveries.id, window)
  const rows = db.select(summary).from(deliveries).where(and(wanted, where))
  const some = await rows.orderBy(order).limit(window.limit).offset(window.offset)
  const total = () => count(db, wanted)
  return { rows: some.map(deliveryRecord), total } satisfies Page<object>
}

function matching({ project_id, webhook_id }: Place, filter: Filter): SQL | undefined {
  const { status, event_type, event_id, since } = filter
  return and(
    eq(deliveries.project_id, project_id),
    eq(deliveries.webhook_id, webhook_id),
    status && eq(deliveries.status, status),
    event_type === undefined ? undefined : eq(deliveries.event_type, event_type),
    event_id === undefined ? undefined : eq(deliveries.event_id, event_id),
    since === undefined ? undefined : createdSince(since),
  )
}

/** The bound once more as an id, so that the index can skip what is older. */
export const createdSince = (since: string) =>
  and(
    gte(deliveries.created_at, since),
    gte(deliveries.id, firstIdAt(millisFrom(since) - SKEW_MILLISECONDS)),
  )

async function count(db: Reader, wanted: SQL | undefined): Promise<number> {
  const [row] = await db.select({ n: sql<number>`count(*)` }).from(deliveries).where(wanted)
  return Number(row?.n ?? 0)
}

const ours = ({ project_id, webhook_id }: Place, id: string) =>
  and(
    eq(deliveries.project_id, project_id),
    eq(deliveries.webhook_id, webhook_id),
    eq(deliveries.id, id),
  )

/** Of this endpoint of this project. Throws 404. */
export async function find(db: Reader, place: Place, id: string): Promise<DeliveryRow> {
  const rows = isUuid(id) ? await db.select().from(deliveries).where(ours(place, id)) : []
  return rows[0] ?? gone()
}

const gone = () => fail("not_found", "There is no such delivery.")

/** The DeliveryDetail record: what was sent, and what came back at the last attempt. */
export async function detail(db: Reader, place: Place, id: string) {
  const row = await find(db, place, id)
  return {
    ...deliveryRecord(row),
    payload: await payloadOf(db, row),
    url: row.url,
    request_headers: row.request_headers,
    response_headers: row.response_headers,
    last_response_body: row.last_response_body,
    attempt_log: row.attempt_log,
  }
}

async function payloadOf(db: Reader, row: DeliveryRow): Promise<unknown> {
  if (row.body !== null) return JSON.parse(row.body)
  const event = await eventOf(db, row)
  return event ? envelopeOf(event) : null
}

async function eventOf(db: Reader, { project_id, event_id }: DeliveryRow) {
  const same = and(eq(events.project_id, project_id), eq(events.id, event_id))
  const [event] = await db.select().from(events).where(same)
  return event
}

/** Deliveries that are over get one more attempt; one more besides those planned, all others. */
export const oneMore = sql<number>`CASE WHEN ${deliveries.status} IN ('success', 'exhausted')
  THEN ${deliveries.attempts} ELSE ${deliveries.max_attempts} END + 1`

/**
 * One extra attempt at once, in whatever status the endpoint is; it does not count for the breaker.
 * Throws 409 while an attempt runs, and when the body is not known any more.
 */
export async function retry(tx: Tx, place: Place, id: string) {
  const query = () => held(tx.select().from(deliveries).where(ours(place, id)))
  const [row] = isUuid(id) ? await query() : []
  if (!row) return gone()
  if (isRunning(row)) {
    fail("conflict", "An attempt of this delivery is running. Wait for its end, and try again.", {
      reason: "running",
      id,
    })
  }
  if (row.body === null && !(await eventOf(tx, row))) {
    const message = "The event of this delivery has expired. There is nothing left to send."
    fail("conflict", message, { reason: "body_expired", id })
  }
  const changes = {
    status: "pending" as const,
    trigger: "manual" as const,
    by_hand: true,
    owner: null,
    next_attempt_at: now(),
    completed_at: null,
  }
  await tx
    .update(deliveries)
    .set({ ...changes, max_attempts: oneMore })
    .where(ours(place, id))
  tx.afterCommit(ringPlanned)
  return deliveryRecord(await find(tx, place, id))
}

/** One whose attempt was lost is free again from the moment at which somebody would take it over. */
const isRunning = ({ id, owner, next_attempt_at }: DeliveryRow): boolean =>
  isInHand(id) || (owner !== null && (next_attempt_at === null || next_attempt_at > now()))
