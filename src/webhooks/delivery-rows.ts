import { eq, getTableColumns, notInArray, type SQL, sql } from "drizzle-orm"
import { countTable } from "../jobs/counts"
import { inFlightOf, wakeUpOf } from "../jobs/in-flight"
import { LEASED } from "../jobs/work-item"
import { isReady, WorkRows } from "../jobs/work-rows"
import type { Reader } from "../store/store"
import { deliveries } from "./tables"
import { count } from "./totals"

const DELIVERIES = "webhook_deliveries"

/** What an attempt and its result need to know: no capture of the last attempt, which may be large. */
const {
  event_type,
  url,
  request_headers,
  response_headers,
  last_response_body,
  last_response_status,
  last_error,
  latency_ms,
  last_attempted_at,
  ...claimed
} = getTableColumns(deliveries)

export type ClaimedDelivery = Pick<typeof deliveries.$inferSelect, keyof typeof claimed>

/** What the engine asks of the table: due deliveries by endpoint, also only those asked for by hand. */
export const deliveryRows = new WorkRows<ClaimedDelivery>(deliveries, deliveries.webhook_id, {
  buried: () => ({ status: "exhausted" }),
  onBury: (tx, row) => count(tx, [row as ClaimedDelivery], { open: -1 }),
  narrows: eq(deliveries.by_hand, true),
  claimed,
  under_hold: {
    takes: {
      status: "held",
      // Until when its endpoint's hold lasted says nothing about when it is due.
      run_at: sql`CASE WHEN state = 3 THEN ${deliveries.created_at} ELSE ${deliveries.run_at} END`,
    },
    frees: {
      status: sql`CASE WHEN ${deliveries.attempts} = 0 OR ${deliveries.by_hand}
        THEN 'pending' ELSE 'failed' END`,
    },
  },
})

/** Held until its endpoint is active again. As literals: see the partial indexes. */
export const isHeldByEndpoint = sql`state = 3 AND owner IS NULL`

const isHeldByName = sql`state = 3 AND owner IS NOT NULL`

/** Wakes the delivery loop of every node, after a commit that made deliveries due. */
export const deliveryWakeUp = (db: Reader) => wakeUpOf(db, DELIVERIES)

export const isInFlight = (db: Reader, delivery: { id: string; state: number }): boolean =>
  delivery.state === LEASED || (inFlightOf(db, DELIVERIES)?.has(delivery.id) ?? false)

/** Excludes deliveries that are attempted now from a query of open ones. */
export function notInFlight(db: Reader): SQL | undefined {
  const ids = inFlightOf(db, DELIVERIES)?.ids() ?? []
  return ids.length === 0 ? undefined : notInArray(deliveries.id, ids)
}

export const WEBHOOKS = "webhooks"

const { id, webhook_id, run_at, owner } = deliveries

export const countDeliveries = countTable(deliveryRows, {
  queue: WEBHOOKS,
  queueOf: () => WEBHOOKS,
  waiting: [
    [isReady, [webhook_id, run_at, id]],
    [isHeldByEndpoint, [webhook_id, run_at, id]],
    [isHeldByName, [owner, id]],
  ],
})
