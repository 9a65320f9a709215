import { and, eq, inArray, lte, type SQL, sql } from "drizzle-orm"
import { newId } from "../core/ids"
import { millis, now, secondsFromNow } from "../core/time"
import { engine } from "../store/columns"
import { held, prepared, skipLocked } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import { deliveries, webhooks } from "./tables"

/** As literals: a bound value would keep the database from using the partial indexes. */
export const isOpen = sql`status in ('pending', 'failed') and owner is null`
const isLeased = sql`owner is not null`
export const isHeld = sql`status = 'held'`

/** Endpoints of one look. More of them take their turn in the next one. */
export const PAGE = 200

/** Longer than any attempt can take, with its end written: nobody need keep it alive. */
const LEASE_MARGIN_SECONDS = 60

export const leaseSeconds = (timeout_ms: number): number => timeout_ms / 1000 + LEASE_MARGIN_SECONDS

/** An endpoint with open work. All but `webhook_id` and `due` is null where it was deleted. */
export type Waiting = Awaited<ReturnType<typeof withOpen>>[number]

/** The endpoints with open deliveries, by id after `after`, and when the first of each is due. */
export const withOpen = (db: Reader, after: string) => openAfter(db, { after })

/** The same with held deliveries, and when the first of each has been held long enough. */
export const withHeld = (db: Reader, after: string) => heldAfter(db, { after })

/** A delivery that is ours to attempt. */
export type Claimed = Awaited<ReturnType<typeof claimOf>>[number]

export interface Wish {
  webhook_id: string
  /** At most so many of its deliveries. */
  room: number
  rate_limit: number | null
  /** The endpoint is disabled: only what was asked for by hand may go. */
  only_by_hand: boolean
}

/**
 * Takes due deliveries of each endpoint, oldest due first, and leases them to a fresh owner. Rejects
 * when they could not be taken; `committed` when that did not reach the disk.
 */
export function claim(store: Store, wishes: Wish[], lease_seconds: number) {
  const taken = Promise.withResolvers<Claimed[]>()
  const committed = store.tx(async (tx) => {
    const claimed: Claimed[] = []
    for (const wish of wishes) claimed.push(...(await claimFor(tx, wish, lease_seconds)))
    // One process holds the file, and its start frees all leases: they need not be on disk.
    if (engine === "sqlite") taken.resolve(claimed)
    return claimed
  })
  committed.then(taken.resolve, taken.reject)
  return { taken: taken.promise, committed }
}

async function claimFor(tx: Tx, wish: Wish, lease_seconds: number): Promise<Claimed[]> {
  const { webhook_id, rate_limit, only_by_hand } = wish
  const most = rate_limit === null ? wish.room : Math.min(wish.room, atOnce(rate_limit))
  if (rate_limit !== null && !(await hasSlot(tx, webhook_id))) return []
  const take = only_by_hand ? claimByHand : claimOf
  const claimed = await take(tx, {
    webhook_id,
    now: now(),
    limit: most,
    owner: newId(),
    lease: secondsFromNow(lease_seconds),
  })
  if (rate_limit !== null && claimed.length > 0) {
    const next_slot_at = secondsFromNow(claimed.length / rate_limit)
    await tx.update(webhooks).set({ next_slot_at }).where(eq(webhooks.id, webhook_id))
  }
  return claimed
}

/** A tenth of a second's deliveries leave together: a slot each would be a commit each. */
const atOnce = (rate_limit: number) => Math.max(1, Math.floor(rate_limit / 10))

/** Slots are handed out in the endpoint's row, one node after the other. */
async function hasSlot(tx: Tx, webhook_id: string): Promise<boolean> {
  const row = tx.select({ at: webhooks.next_slot_at }).from(webhooks)
  const [found] = await held(row.where(eq(webhooks.id, webhook_id)))
  return found !== undefined && (found.at === null || Date.parse(found.at) <= millis())
}

type Lease = Pick<Claimed, "id" | "owner">

const leased = ({ id, owner }: Lease) =>
  and(eq(deliveries.id, id), eq(deliveries.owner, owner ?? ""))

/** What was not begun, or cut off at the stop, is due again; no attempt is counted. */
export async function giveBack(store: Store, list: Lease[], seconds = 0): Promise<void> {
  if (list.length === 0) return
  const next_attempt_at = secondsFromNow(seconds)
  await store.tx(async (tx) => {
    for (const one of list) {
      await tx.update(deliveries).set({ owner: null, next_attempt_at }).where(leased(one))
    }
  })
}

/** Ends a delivery of which there is nothing left to send, or nobody to send it to. */
export async function drop(store: Store, one: Lease): Promise<void> {
  const over = { owner: null, next_attempt_at: null, completed_at: now() }
  await store.tx((tx) =>
    tx
      .update(deliveries)
      .set({ ...over, status: "exhausted" })
      .where(leased(one)),
  )
}

/** Frees every lease, where nobody else can live: their owners are dead, their attempts unknown. */
export async function freeAll(store: Store): Promise<void> {
  await store.tx((tx) =>
    tx.update(deliveries).set({ owner: null, next_attempt_at: now() }).where(isLeased),
  )
}

/** Frees the leases that ran out: who held them died, or could not write the end. */
export async function sweep(store: Store): Promise<void> {
  const over = and(isLeased, lte(next_attempt_at, now()))
  const [first] = await store.read
    .select({ id: deliveries.id })
    .from(deliveries)
    .where(over)
    .limit(1)
  if (first) await store.tx((tx) => tx.update(deliveries).set({ owner: null }).where(over))
}

/** From one endpoint to the next by the index, however many deliveries each of them has. */
function walk(db: Reader, state: SQL, after: SQL) {
  const next = (from: SQL) =>
    sql`(SELECT min(webhook_id) FROM deliveries WHERE ${state} AND webhook_id > ${from})`
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
      webhook_id: sql<string>`step.webhook_id`,
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

const { webhook_id, next_attempt_at, attempts, owner, by_hand } = deliveries

const openAfter = prepared({ after: webhook_id }, (db: Reader, slot) =>
  walk(db, isOpen, slot.after),
)

const heldAfter = prepared({ after: webhook_id }, (db: Reader, slot) =>
  walk(db, isHeld, slot.after),
)

const taken = { webhook_id, now: next_attempt_at, limit: attempts, owner, lease: next_attempt_at }

/** What an attempt and its end need to know. */
const columns = {
  id: deliveries.id,
  webhook_id,
  event_id: deliveries.event_id,
  trigger: deliveries.trigger,
  attempts,
  max_attempts: deliveries.max_attempts,
  by_hand,
  owner,
  body: deliveries.body,
  attempt_log: deliveries.attempt_log,
  first_attempted_at: deliveries.first_attempted_at,
}

const claimWhere = (which: SQL | undefined) =>
  prepared(taken, (tx: Tx, slot) => {
    const due = and(eq(webhook_id, slot.webhook_id), isOpen, lte(next_attempt_at, slot.now), which)
    const ids = tx.select({ id: deliveries.id }).from(deliveries).where(due)
    const first = ids.orderBy(next_attempt_at).limit(slot.limit as unknown as number)
    return tx
      .update(deliveries)
      .set({ owner: slot.owner, next_attempt_at: slot.lease })
      .where(inArray(deliveries.id, skipLocked(first)))
      .returning(columns)
  })

const claimOf = claimWhere(undefined)
const claimByHand = claimWhere(eq(by_hand, true))
