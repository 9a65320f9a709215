import { type SQL, sql } from "drizzle-orm"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { deliveries, webhooks } from "./tables"

/** As literals: a bound value would keep the database from using the partial indexes. */
export const isOpen = sql`status in ('pending', 'failed') and owner is null`
export const isLeased = sql`owner is not null`
export const isHeld = sql`status = 'held'`

/** Endpoints of one look. More of them take their turn in the next one. */
export const PAGE = 200

/** An endpoint with open work. All but `webhook_id` and `due` is null where it was deleted. */
export type OpenEndpoint = Awaited<ReturnType<typeof withOpen>>[number]

/** The endpoints with open deliveries, by id after `after`, and when the first of each is due. */
export const withOpen = (db: Reader, after: string) => openAfter(db, { after })

/** The same with held deliveries, and when the first of each has been held long enough. */
export const withHeld = (db: Reader, after: string) => heldAfter(db, { after })

const openAfter = prepared({ after: deliveries.webhook_id }, (db: Reader, slot) =>
  walk(db, isOpen, slot.after),
)

const heldAfter = prepared({ after: deliveries.webhook_id }, (db: Reader, slot) =>
  walk(db, isHeld, slot.after),
)

/** From one endpoint to the next by the index, however many deliveries each of them has. */
function walk(db: Reader, state: SQL, after: SQL) {
  const next = (from: SQL) =>
    sql`(SELECT webhook_id FROM deliveries WHERE ${state} AND webhook_id > ${from}
      ORDER BY webhook_id LIMIT 1)`
  const page = sql.raw(String(PAGE))
  const steps = sql`(WITH RECURSIVE step(webhook_id, number) AS (
    SELECT ${next(after)}, 1
    UNION ALL SELECT ${next(sql`step.webhook_id`)}, number + 1 FROM step
      WHERE step.webhook_id IS NOT NULL AND number < ${page}
  ) SELECT webhook_id FROM step WHERE webhook_id IS NOT NULL) AS step`
  const first = sql<number | string | null>`(SELECT min(d.next_attempt_at) FROM deliveries d
    WHERE ${state} AND d.webhook_id = step.webhook_id)`
  return db
    .select({
      webhook_id: sql`step.webhook_id`.mapWith(deliveries.webhook_id),
      due: first,
      status: webhooks.status,
      consecutive_failures: webhooks.consecutive_failures,
      rate_limit: webhooks.rate_limit,
      next_slot_at: webhooks.next_slot_at,
      updated_at: webhooks.updated_at,
    })
    .from(steps)
    .leftJoin(webhooks, sql`${webhooks.id} = step.webhook_id`)
}
