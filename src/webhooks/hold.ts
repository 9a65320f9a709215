import { and, eq, gte, inArray, isNull, lt, lte, type SQL, sql } from "drizzle-orm"
import { millis, now, secondsFromNow } from "../core/time"
import { skipLocked } from "../store/locks"
import type { Reader, Store, Tx } from "../store/store"
import { ringPlanned } from "./bell"
import { notInHand } from "./in-hand"
import { deliveries } from "./tables"
import { isHeld, isOpen, type Waiting, withHeld } from "./walk"

const HELD_SECONDS = 7 * 86_400
const AT_ONCE = 500

const { id, webhook_id, by_hand, owner, next_attempt_at, created_at, event_type } = deliveries

/** Until when what is held now can be sent. */
export const heldUntil = (): string => secondsFromNow(HELD_SECONDS)

/**
 * Puts the endpoint's open deliveries aside, some at a time; the delivery loop goes on with the
 * rest. Returns how many. What runs, or was asked for by hand, is left alone.
 */
export async function holdOpen(tx: Tx, webhook: { id: string }): Promise<number> {
  const some = skipLocked(waitingOf(tx, webhook.id, AT_ONCE))
  const rows = await tx
    .update(deliveries)
    .set({ status: "held", next_attempt_at: heldUntil() })
    .where(inArray(id, some))
    .returning({ id })
  tx.afterCommit(ringPlanned)
  return rows.length
}

/** Holds what a disabled endpoint has open, and ends what a deleted one has: some at a time. */
export async function setAside(
  store: Store,
  { webhook_id, status }: Pick<Waiting, "webhook_id" | "status">,
): Promise<void> {
  const webhook = { id: webhook_id }
  if (status === null) await store.tx((tx) => exhaustAll(tx, webhook))
  else if (status === "disabled" && (await hasToHold(store.read, webhook))) {
    await store.tx((tx) => holdOpen(tx, webhook))
  }
}

/** Whether `holdOpen` would find anything. */
async function hasToHold(db: Reader, webhook: { id: string }): Promise<boolean> {
  const [first] = await waitingOf(db, webhook.id, 1)
  return first !== undefined
}

const waitingOf = (db: Reader, webhook: string, most: number) =>
  db
    .select({ id })
    .from(deliveries)
    .where(and(eq(webhook_id, webhook), isOpen, eq(by_hand, false), notInHand()))
    .limit(most)

export interface Wanted {
  /** ISO 8601, of the deliveries' `created_at`: from this moment on … */
  since?: string | undefined
  /** … and before this one. */
  until?: string | undefined
  /** Exact types; none means all. */
  event_types?: string[] | undefined
}

/**
 * Makes up to `limit` held deliveries of an endpoint due, with the attempts they have left. Returns
 * how many; 0 means that none is left. A delivery is released once, also when two callers release at the same time.
 */
export async function release(
  tx: Tx,
  webhook: { id: string },
  wanted: Wanted,
  limit: number,
): Promise<number> {
  const { since, until, event_types } = wanted
  const chosen = and(
    eq(webhook_id, webhook.id),
    isHeld,
    since === undefined ? undefined : gte(created_at, since),
    until === undefined ? undefined : lt(created_at, until),
    event_types && event_types.length > 0 ? inArray(event_type, event_types) : undefined,
  )
  const oldest = tx.select({ id }).from(deliveries).where(chosen).orderBy(next_attempt_at)
  const rows = await tx
    .update(deliveries)
    .set({ status: "pending", trigger: "replay", next_attempt_at: now() })
    .where(inArray(id, skipLocked(oldest.limit(limit))))
    .returning({ id })
  tx.afterCommit(ringPlanned)
  return rows.length
}

/** Ends what nobody released in its seven days, or can release any more. Returns how many. */
export async function expireHeld(store: Store): Promise<number> {
  let ended = 0
  let page = await withHeld(store.read, "")
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
    page = await withHeld(store.read, page.at(-1)?.webhook_id ?? "")
  }
  return ended
}

const expire = (tx: Tx, webhook: string) =>
  exhaust(tx, and(eq(webhook_id, webhook), isHeld, lte(next_attempt_at, now())))

/** Ends what is left of an endpoint that is no more, some at a time. Returns how many went. */
export const exhaustAll = (tx: Tx, webhook: { id: string }): Promise<number> =>
  exhaust(
    tx,
    and(eq(webhook_id, webhook.id), sql`status in ('pending', 'failed', 'held')`, isNull(owner)),
  )

async function exhaust(tx: Tx, which: SQL | undefined): Promise<number> {
  const some = tx.select({ id }).from(deliveries).where(which).limit(AT_ONCE)
  const rows = await tx
    .update(deliveries)
    .set({ status: "exhausted", next_attempt_at: null, completed_at: now() })
    .where(inArray(id, skipLocked(some)))
    .returning({ id })
  return rows.length
}
