import { and, eq, inArray, lt, lte } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millis, millisFrom, now } from "../core/time"
import { events } from "../events/tables"
import { isHeld } from "../jobs/work-rows"
import type { Store, Tx } from "../store/store"
import { withHeld } from "./delivery-picker"
import { exhaust, exhaustAll } from "./held"
import { deliveries } from "./tables"

/** Rows of one transaction, so that other transactions run between two of them. */
const BATCH = 500

const purger = (table: typeof deliveries | typeof events, prefix: string) => {
  const { id } = table
  return async (store: Store, before: string): Promise<number> => {
    const old = lt(id, `${prefix}${firstIdAt(millisFrom(before))}`)
    const rows = await store.read.select({ id }).from(table).where(old).limit(BATCH)
    const ids = rows.map((row) => row.id)
    if (ids.length > 0) await store.tx((tx) => tx.delete(table).where(inArray(id, ids)))
    return ids.length
  }
}

/** Removes up to 500 deliveries made before this moment (ISO 8601). Returns how many. */
export const purgeDeliveries = purger(deliveries, "")

/** Removes up to 500 events recorded before this moment (ISO 8601). Returns how many. */
export const purgeEvents = purger(events, "evt_")

/** Ends held deliveries after seven days, and those of deleted endpoints. Returns how many. */
export async function expireHeld(store: Store): Promise<number> {
  let ended = 0
  let page = await withHeld(store.read, { after: "" })
  while (page.length > 0) {
    for (const { webhook_id, due, status } of page) {
      const deleted = status === null
      if (!deleted && Number(due) > millis()) continue
      let went = 0
      do {
        went = await store.tx((tx) => {
          return deleted ? exhaustAll(tx, { id: webhook_id }) : expire(tx, webhook_id)
        })
        ended += went
      } while (went > 0)
    }
    page = await withHeld(store.read, { after: page.at(-1)?.webhook_id ?? "" })
  }
  return ended
}

function expire(tx: Tx, webhook: string): Promise<number> {
  const { webhook_id, run_at } = deliveries
  return exhaust(tx, and(eq(webhook_id, webhook), isHeld, lte(run_at, now())))
}
