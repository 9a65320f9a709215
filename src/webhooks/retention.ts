import { and, asc, eq, gt, inArray, lt, lte } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millis, millisFrom, now } from "../core/time"
import { events } from "../events/tables"
import { projects } from "../identity/tables"
import { DEAD, OVER } from "../jobs/work-item"
import type { Reader, Store, Tx } from "../store/store"
import { withHeld } from "./delivery-picker"
import { isHeldByEndpoint } from "./delivery-rows"
import { exhaust, exhaustAll } from "./held"
import { deliveries, webhooks } from "./tables"

/** Rows of one transaction, so that other transactions run between two of them. */
const BATCH = 500

/** Whether the project has an endpoint, whose deliveries show their events. */
export async function hasEndpoints(db: Reader, project: string): Promise<boolean> {
  const { id, project_id } = webhooks
  const rows = await db.select({ id }).from(webhooks).where(eq(project_id, project)).limit(1)
  return rows.length > 0
}

/** The first endpoint with deliveries behind this one, also a deleted one, and what its project decided. */
export async function nextEndpoint(db: Reader, after: string) {
  const { webhook_id, project_id } = deliveries
  const { settings } = projects
  const rows = db.select({ webhook_id, settings }).from(deliveries)
  const behind = rows.leftJoin(projects, eq(projects.id, project_id)).where(gt(webhook_id, after))
  const [next] = await behind.orderBy(asc(webhook_id), asc(deliveries.id)).limit(1)
  return next
}

/** Removes up to 500 ended deliveries of an endpoint made before this moment (ISO 8601). Returns how many. */
export async function purgeDeliveries(
  store: Store,
  webhook: string,
  before: string,
): Promise<number> {
  const { id, webhook_id, state } = deliveries
  const has_ended = and(lt(id, firstIdAt(millisFrom(before))), inArray(state, [OVER, DEAD]))
  const old = and(eq(webhook_id, webhook), has_ended)
  const rows = await store.read.select({ id }).from(deliveries).where(old).orderBy(id).limit(BATCH)
  const ids = rows.map((row) => row.id)
  if (ids.length > 0) await store.tx((tx) => tx.delete(deliveries).where(inArray(id, ids)))
  return ids.length
}

/** Removes up to 500 events of a project recorded before this moment (ISO 8601). Returns how many. */
export async function purgeEvents(store: Store, project: string, before: string): Promise<number> {
  const { id, project_id, position } = events
  // The oldest stand first in the index, whatever the engine puts into `position`.
  const first = store.read.select({ id }).from(events).where(eq(project_id, project))
  const oldest = await first.orderBy(asc(position), asc(id)).limit(BATCH)
  const end = `evt_${firstIdAt(millisFrom(before))}`
  const ids = oldest.flatMap((row) => (row.id < end ? [row.id] : []))
  if (ids.length > 0) await store.tx((tx) => tx.delete(events).where(inArray(id, ids)))
  return ids.length
}

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
  return exhaust(tx, and(eq(webhook_id, webhook), isHeldByEndpoint, lte(run_at, now())))
}
