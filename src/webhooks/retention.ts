import { and, asc, eq, gt, inArray, lt, lte, notExists, notInArray, type SQL } from "drizzle-orm"
import { firstEventIdAt, firstIdAt } from "../core/ids"
import { millis, millisFrom, now } from "../core/time"
import { behind, type FeedPosition } from "../events/feed"
import { events } from "../events/tables"
import { projects } from "../identity/tables"
import { ENDED, hasEnded } from "../jobs/work-item"
import type { Reader, Store, Tx } from "../store/store"
import { withHeld } from "./delivery-picker"
import { isHeldByEndpoint } from "./delivery-rows"
import { addStored, count, forgetDeleted, storedBytes, waitsForEndpoint } from "./endpoint-counts"
import { exhaust, exhaustAll } from "./held"
import { deliveries, webhooks, webhookTotals } from "./tables"

/** Rows of one transaction, so that other transactions run between two of them. */
const BATCH = 100

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

/** Removes up to 100 ended deliveries of an endpoint made before this moment (ISO 8601). Returns how many. */
export async function purgeDeliveries(
  store: Store,
  webhook: string,
  before: string,
): Promise<number> {
  const { id, webhook_id, state } = deliveries
  const has_ended = and(lt(id, firstIdAt(millisFrom(before))), inArray(state, ENDED))
  const old = and(eq(webhook_id, webhook), has_ended)
  const rows = await store.read.select({ id }).from(deliveries).where(old).orderBy(id).limit(BATCH)
  const ids = rows.map((row) => row.id)
  // One that was asked for again since then is open.
  const still = and(inArray(id, ids), has_ended)
  if (ids.length > 0) {
    await store.tx(async (tx) => {
      await removeCounted(tx, still)
      if (ids.length < BATCH) await forgetDeleted(tx, webhook)
    })
  }
  return ids.length
}

async function removeCounted(tx: Tx, which: SQL | undefined): Promise<void> {
  const { project_id, webhook_id, state, owner } = deliveries
  const columns = { project_id, webhook_id, state, owner, bytes: storedBytes.mapWith(Number) }
  const gone = await tx.delete(deliveries).where(which).returning(columns)
  await count(tx, gone, { deliveries: -1 })
  const open = gone.filter((row) => !hasEnded(row))
  await count(tx, open, { open: -1 })
  await count(tx, gone.filter(waitsForEndpoint), { held: -1 })
  await addStored(
    tx,
    gone.map((row) => ({ ...row, bytes: -row.bytes })),
  )
}

/** Removes the deliveries of these events, whatever became of them. */
export const removeOfEvents = (tx: Tx, event_ids: string[]) =>
  removeCounted(tx, inArray(deliveries.event_id, event_ids))

/**
 * Removes some deliveries of a project, also of deleted endpoints, in whatever state. Returns how many. Where an
 * event went before its deliveries, only their endpoint leads to them.
 */
export async function removeSomeOf(tx: Tx, project_id: string): Promise<number> {
  const { id, webhook_id } = deliveries
  const joined = tx
    .select({ id })
    .from(webhookTotals)
    .innerJoin(deliveries, eq(webhook_id, webhookTotals.webhook_id))
  const rows = await joined.where(eq(webhookTotals.project_id, project_id)).limit(BATCH)
  const ids = rows.map((row) => row.id)
  if (ids.length > 0) await tx.delete(deliveries).where(inArray(id, ids))
  return ids.length
}

/** Events of a project that were recorded before a moment: ISO 8601, UTC. */
interface OldEvents {
  project_id: string
  before: string
}

/**
 * Removes those of the next 100 events behind the place `after` that no open delivery needs. Resolves with the
 * last place, or undefined where there is no further old event.
 */
export async function purgeEvents(
  store: Store,
  { before, ...old }: OldEvents,
  after?: FeedPosition,
): Promise<FeedPosition | undefined> {
  const { id, project_id, position } = events
  // The oldest stand first in the index, whatever the engine puts into `position`.
  const ours = and(eq(project_id, old.project_id), after && behind(after))
  const next = store.read.select({ id, position }).from(events).where(ours)
  const rows = await next.orderBy(asc(position), asc(id)).limit(BATCH)
  const end = firstEventIdAt(millisFrom(before))
  const over = rows.filter((row) => row.id < end)
  const ids = over.map((row) => row.id)
  if (ids.length > 0) await store.tx((tx) => removeUnneeded(tx, ids))
  return over.at(-1)
}

/** A delivery has no body of its own before its first attempt: it sends what the event says. */
async function removeUnneeded(tx: Tx, ids: string[]): Promise<void> {
  const { event_id, state } = deliveries
  const is_open = notInArray(state, ENDED)
  const open = tx
    .select({ state })
    .from(deliveries)
    .where(and(eq(event_id, events.id), is_open))
  await tx.delete(events).where(and(inArray(events.id, ids), notExists(open)))
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
