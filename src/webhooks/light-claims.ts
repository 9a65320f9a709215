import { and, eq, lte, type SQL } from "drizzle-orm"
import { newId } from "../core/ids"
import { now } from "../core/time"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { ahead } from "./ahead"
import { type Claimed, type ClaimRequest, claimedColumns } from "./claimed"
import { inHandOf, isInHand, takeInHand } from "./in-hand"
import { deliveries } from "./tables"
import { isOpen } from "./walk"

const { webhook_id, next_attempt_at, attempts, by_hand } = deliveries

/**
 * Claims by memory alone (see `in-hand.ts`), where one process holds the file: oldest due first, of
 * each endpoint as many as it has room for. `db` is what is committed.
 */
export async function takeInMemory(
  db: Reader,
  wishes: readonly ClaimRequest[],
): Promise<Claimed[]> {
  const owner = newId()
  const claimed: Claimed[] = []
  const take = (row: Claimed) => {
    takeInHand(row, owner)
    claimed.push({ ...row, owner, in_hand: true })
  }
  for (const wish of wishes) {
    const known = wish.only_by_hand ? [] : ahead.take(wish.webhook_id, wish.room)
    for (const row of known) take(row)
    const room = wish.room - known.length
    if (room > 0) for (const row of await look(db, { ...wish, room })) take(row)
  }
  return claimed
}

/** Those in hand are still in the index of what is due: so many more are looked at. */
async function look(
  db: Reader,
  { webhook_id, room, only_by_hand }: ClaimRequest,
): Promise<Claimed[]> {
  const { forgotten } = ahead
  const extra = only_by_hand ? 0 : ahead.extraFor(webhook_id)
  const limit = room + inHandOf(webhook_id) + extra
  const read = only_by_hand ? dueByHand : dueOf
  const found = await read(db, { webhook_id, now: now(), limit })
  const free = found.filter(({ id }) => !isInHand(id))
  if (!only_by_hand) ahead.keep(webhook_id, free.slice(room), found.length < limit, forgotten)
  return free.slice(0, room)
}

const dueWhere = (which: SQL | undefined) =>
  prepared({ webhook_id, now: next_attempt_at, limit: attempts }, (db: Reader, slot) => {
    const due = and(eq(webhook_id, slot.webhook_id), isOpen, lte(next_attempt_at, slot.now), which)
    const some = db.select(claimedColumns).from(deliveries).where(due)
    return some.orderBy(next_attempt_at).limit(slot.limit as unknown as number)
  })

const dueOf = dueWhere(undefined)
const dueByHand = dueWhere(eq(by_hand, true))
