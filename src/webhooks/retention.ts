import { inArray, lt } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millisFrom } from "../core/time"
import { events } from "../events/tables"
import type { Store } from "../store/store"
import { deliveries } from "./tables"

/** Rows of one transaction: others are to get their turn between. */
const AT_ONCE = 500

/** Removes deliveries made before this moment (ISO 8601), some at a time. Returns how many went. */
export async function purgeDeliveries(store: Store, before: string): Promise<number> {
  const { id } = deliveries
  const old = lt(id, firstIdAt(millisFrom(before)))
  const some = await store.read.select({ id }).from(deliveries).where(old).limit(AT_ONCE)
  const ids = some.map((row) => row.id)
  if (ids.length > 0) await store.tx((tx) => tx.delete(deliveries).where(inArray(id, ids)))
  return ids.length
}

/** Removes events recorded before this moment (ISO 8601), some at a time. Returns how many went. */
export async function purgeEvents(store: Store, before: string): Promise<number> {
  const { id } = events
  const old = lt(id, `evt_${firstIdAt(millisFrom(before))}`)
  const some = await store.read.select({ id }).from(events).where(old).limit(AT_ONCE)
  const ids = some.map((row) => row.id)
  if (ids.length > 0) await store.tx((tx) => tx.delete(events).where(inArray(id, ids)))
  return ids.length
}
