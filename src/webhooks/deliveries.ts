import type { Static } from "@sinclair/typebox"
import { and, eq, getTableColumns, inArray, sql } from "drizzle-orm"
import { conflict, fail } from "../core/errors"
import { now } from "../core/time"
import { envelopeOf } from "../events/feed"
import { events } from "../events/tables"
import type { Page } from "../http/page"
import { HELD, hasEnded, READY, RESTORE_HOLD, RESTORE_REASON } from "../jobs/work-item"
import { fieldsOf } from "../lib/record-fields"
import { eqUnindexed, isAskedId } from "../store/columns"
import {
  boundedList,
  idsBetween,
  type ListWindow,
  rowById,
  rowForUpdate,
  timesBetween,
} from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { deliveryWakeUp, isInFlight } from "./delivery-rows"
import * as counts from "./endpoint-counts"
import * as schemas from "./schemas"
import { type DeliveryStatus, deliveries } from "./tables"

type DeliveryRow = typeof deliveries.$inferSelect

/** The columns of a list: without bodies and captures, which are large. */
const {
  body,
  url,
  request_headers,
  response_headers,
  last_response_body,
  attempt_log,
  ...summary
} = getTableColumns(deliveries)

type DeliverySummary = Pick<DeliveryRow, keyof typeof summary>

const toResponse = (db: Reader, row: DeliverySummary): Static<typeof schemas.Delivery> =>
  fieldsOf(schemas.Delivery, {
    ...row,
    msg_id: row.event_id,
    next_attempt_at: row.state === READY && !isInFlight(db, row) ? row.run_at : null,
    completed_at: hasEnded(row) ? row.run_at : null,
  })

interface DeliveryFilter {
  status: DeliveryStatus | undefined
  event_type: string | undefined
  event_id: string | undefined
  since: string | undefined
}

export async function named(db: Reader, ids: string[]) {
  if (ids.length === 0) return []
  const rows = db.select(summary).from(deliveries).where(inArray(deliveries.id, ids))
  return (await rows.orderBy(deliveries.id)).map((row) => toResponse(db, row))
}

/** Newest first. The endpoint is one of the project: no condition asks it of each row. */
export async function list(
  db: Reader,
  { project_id, webhook_id }: counts.OfEndpoint,
  { status, event_type, event_id, since }: DeliveryFilter,
  window: ListWindow,
): Promise<Page<ReturnType<typeof toResponse>>> {
  const { id, created_at } = deliveries
  const filter = and(
    status && eq(deliveries.status, status),
    event_type === undefined ? undefined : eq(deliveries.event_type, event_type),
    timesBetween(created_at, { after: since }),
  )
  const where = and(
    event_id === undefined
      ? eq(deliveries.webhook_id, webhook_id)
      : and(
          isAskedId(deliveries.event_id, event_id),
          eqUnindexed(db, deliveries.webhook_id, webhook_id),
        ),
    idsBetween(id, { after: since }),
  )
  const along = { rows: deliveries, id, where }
  const list = boundedList<DeliverySummary>(db, {
    ...{ owner: project_id, table: deliveries, fields: summary, along, filter },
  })
  const { rows, end } = await list.list(window)
  const is_whole = filter === undefined && event_id === undefined
  const total = async () => (await counts.totalsOfOne(db, webhook_id)).deliveries
  return {
    rows: rows.map((row) => toResponse(db, row)),
    end,
    total: is_whole ? total : list.total,
  }
}

const ours = ({ project_id, webhook_id }: counts.OfEndpoint) =>
  and(eq(deliveries.project_id, project_id), eq(deliveries.webhook_id, webhook_id))

/** Throws 404. */
export const find = async (db: Reader, of: counts.OfEndpoint, id: string): Promise<DeliveryRow> =>
  (await rowById(db, deliveries, id, ours(of))) ?? missing()

const missing = () => fail("not_found", "There is no such delivery.")

/** The DeliveryDetail record: the last request and its answer, and every attempt. */
export async function detail(db: Reader, of: counts.OfEndpoint, id: string) {
  const row = await find(db, of, id)
  const payload = await payloadOf(db, row)
  return fieldsOf(schemas.DeliveryDetail, { ...row, ...toResponse(db, row), payload })
}

async function payloadOf(db: Reader, row: DeliveryRow): Promise<unknown> {
  if (row.body !== null) return JSON.parse(row.body)
  const event = await eventOf(db, row)
  return event ? envelopeOf(event) : null
}

async function eventOf(db: Reader, { project_id, event_id }: DeliveryRow) {
  const same = and(eq(events.project_id, project_id), eq(events.id, event_id))
  return (await db.select().from(events).where(same))[0]
}

/** A delivery that has ended gets one attempt. An open one gets one besides those that are planned. */
export const oneMoreAttempt = (trigger: "manual" | "replay") => ({
  status: "pending" as const,
  state: READY,
  trigger,
  by_hand: trigger === "manual",
  run_at: now(),
  max_attempts: sql<number>`CASE WHEN ${deliveries.status} IN ('success', 'exhausted')
    THEN ${deliveries.attempts} ELSE ${deliveries.max_attempts} END + 1`,
})

/**
 * One extra attempt at once, in every status of the endpoint; it does not count for the breaker.
 * Throws 409 while an attempt runs, when the event has expired, and while a restored copy holds it.
 */
export async function retry(tx: Tx, of: counts.OfEndpoint, id: string) {
  const row = (await rowForUpdate(tx, deliveries, id, ours(of))) ?? missing()
  if (isInFlight(tx, row)) {
    conflict(
      "running",
      id,
      "An attempt of this delivery is running. Wait for its end, and try again.",
    )
  }
  if (row.state === HELD && row.owner === RESTORE_HOLD) conflict(RESTORE_HOLD, id, RESTORE_REASON)
  if (row.body === null && !(await eventOf(tx, row))) {
    const message = "The event of this delivery has expired. There is nothing left to send."
    conflict("body_expired", id, message)
  }
  await tx
    .update(deliveries)
    .set(oneMoreAttempt("manual"))
    .where(and(ours(of), eq(deliveries.id, id)))
  if (hasEnded(row)) await counts.count(tx, [row], { open: 1 })
  if (counts.waitsForEndpoint(row)) await counts.count(tx, [row], { held: -1 })
  tx.afterCommit(deliveryWakeUp(tx).wakeUp)
  return toResponse(tx, await find(tx, of, id))
}
