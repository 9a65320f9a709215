import { and, eq, inArray, type SQL, sql } from "drizzle-orm"
import { now, secondsFromNow } from "../core/time"
import { DEAD, HELD, READY } from "../jobs/work-item"
import { isReady } from "../jobs/work-rows"
import { skipLocked } from "../store/columns"
import type { Reader, Store, Tx } from "../store/store"
import { deliveryWakeUp, isHeldByEndpoint, notInFlight } from "./delivery-rows"
import { count, OF_ENDPOINT, waitsForEndpoint } from "./endpoint-counts"
import { type DeliveryError, deliveries, type WebhookStatus } from "./tables"

const HELD_SECONDS = 7 * 86_400
const BATCH = 500

const { id, webhook_id, by_hand, state, owner, run_at } = deliveries

/** Until when a delivery that is held now can be released. */
export const heldUntil = (): string => secondsFromNow(HELD_SECONDS)

/**
 * Holds the endpoint's open deliveries, 500 at a time; the delivery loop holds the rest. Returns how
 * many. A delivery that is attempted now, or was asked for by hand, is left alone.
 */
export async function holdOpen(tx: Tx, webhook: { id: string }): Promise<number> {
  const some = skipLocked(waitingOf(tx, webhook.id, BATCH))
  const rows = await tx
    .update(deliveries)
    .set({ status: "held", state: HELD, run_at: heldUntil() })
    .where(inArray(id, some))
    .returning(OF_ENDPOINT)
  await count(tx, rows, { held: 1 })
  tx.afterCommit(deliveryWakeUp(tx).wakeUp)
  return rows.length
}

/** Holds open deliveries of a disabled endpoint, and ends those of a deleted one, 500 at a time. */
export async function clearInactive(
  store: Store,
  { webhook_id, status }: { webhook_id: string; status: WebhookStatus | null },
): Promise<void> {
  const webhook = { id: webhook_id }
  if (status === null) await store.tx((tx) => exhaustAll(tx, webhook))
  if (status !== "disabled") return
  const [first] = await waitingOf(store.read, webhook_id, 1)
  if (first) await store.tx((tx) => holdOpen(tx, webhook))
}

const waitingOf = (db: Reader, webhook: string, most: number) =>
  db
    .select({ id })
    .from(deliveries)
    .where(and(eq(webhook_id, webhook), isReady, eq(by_hand, false), notInFlight(db)))
    .limit(most)

/**
 * Makes up to `limit` held deliveries of an endpoint due (of `ids`, or the oldest of all), with the attempts they have left. Returns
 * how many; 0 means that none is left. A delivery is released once, also when two callers release at the same time.
 */
export async function releaseHeld(
  tx: Tx,
  webhook: { id: string },
  ids: string[] | undefined,
  limit: number,
): Promise<number> {
  if (limit === 0) return 0
  const chosen = and(eq(webhook_id, webhook.id), isHeldByEndpoint, ids && inArray(id, ids))
  const oldest = tx.select({ id }).from(deliveries).where(chosen).orderBy(run_at)
  const rows = await tx
    .update(deliveries)
    .set({ status: "pending", state: READY, trigger: "replay", run_at: now() })
    .where(inArray(id, skipLocked(oldest.limit(limit))))
    .returning(OF_ENDPOINT)
  await count(tx, rows, { held: -1 })
  tx.afterCommit(deliveryWakeUp(tx).wakeUp)
  return rows.length
}

/** Ends deliveries of a deleted endpoint, those of a restored copy too, 500 at a time. Returns how many. */
export const exhaustAll = (tx: Tx, webhook: { id: string }): Promise<number> =>
  exhaust(tx, and(eq(webhook_id, webhook.id), sql`state in (0, 3)`, notInFlight(tx)))

/**
 * Ends up to 500 of these deliveries as `exhausted`. With `longest` it ends the `most` that have waited longest, and
 * they keep `last_error` as the reason. Returns how many.
 */
export async function exhaust(
  tx: Tx,
  which: SQL | undefined,
  longest?: { most: number; last_error: DeliveryError },
): Promise<number> {
  const columns = { id, state, owner, ...OF_ENDPOINT }
  const all = tx.select(columns).from(deliveries).where(which).$dynamic()
  // By time alone, as the index of held ones has it: those that an endpoint's end held together have one time.
  const some = longest ? all.orderBy(run_at).limit(longest.most) : all.limit(BATCH)
  const rows = await skipLocked(some)
  if (rows.length === 0) return 0
  const ids = rows.map((row) => row.id)
  const ended = { status: "exhausted", state: DEAD, owner: null, run_at: now() } as const
  const why = longest && { last_error: longest.last_error }
  await tx
    .update(deliveries)
    .set({ ...ended, ...why })
    .where(inArray(id, ids))
  await count(tx, rows, { open: -1 })
  await count(tx, rows.filter(waitsForEndpoint), { held: -1 })
  return rows.length
}
