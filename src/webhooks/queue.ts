import { and, eq, inArray, isNull, lte, or, type SQL, sql } from "drizzle-orm"
import { newId } from "../core/ids"
import { millis, now, secondsFromNow } from "../core/time"
import { engine } from "../store/columns"
import { held, skipLocked } from "../store/locks"
import { prepared, updater } from "../store/statements"
import type { Store, Tx } from "../store/store"
import { type Claimed, type ClaimRequest, claimedColumns } from "./claimed"
import { isStillInHand, letGo } from "./in-hand"
import { takeInMemory } from "./light-claims"
import { deliveries, webhooks } from "./tables"
import { isLeased, isOpen } from "./walk"

/** Longer than any attempt can take, with its end written: nobody need keep it alive. */
const LEASE_MARGIN_SECONDS = 60

export type { Claimed, ClaimRequest } from "./claimed"

export const leaseSeconds = (timeout_ms: number): number => timeout_ms / 1000 + LEASE_MARGIN_SECONDS

/**
 * Takes due deliveries of each endpoint, oldest due first. Where others claim too, and where a rate
 * is to be kept, the rows are leased to a fresh owner; else they are ours because nobody else is.
 */
export async function claim(
  store: Store,
  wishes: ClaimRequest[],
  lease_seconds: number,
): Promise<Claimed[]> {
  const isLight = ({ rate_limit }: ClaimRequest) => engine === "sqlite" && rate_limit === null
  const claimed = await takeInMemory(store.read, wishes.filter(isLight))
  const others = wishes.filter((wish) => !isLight(wish))
  if (others.length === 0) return claimed
  try {
    const leased = await store.tx(async (tx) => {
      const list: Claimed[] = []
      for (const wish of others) list.push(...(await claimFor(tx, wish, lease_seconds)))
      return list
    })
    return [...claimed, ...leased]
  } catch (error) {
    letGo(claimed)
    throw error
  }
}

async function claimFor(tx: Tx, wish: ClaimRequest, lease_seconds: number): Promise<Claimed[]> {
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

type Lease = Pick<Claimed, "id" | "webhook_id" | "owner" | "in_hand">

/** The row of a claim, as long as that is ours. */
export function leased(one: Lease): SQL | undefined {
  const theirs = and(eq(deliveries.id, one.id), eq(deliveries.owner, one.owner ?? ""))
  if (!one.in_hand) return theirs
  if (!isStillInHand(one)) return sql`false`
  const open = and(isNull(deliveries.owner), inArray(deliveries.status, ["pending", "failed"]))
  return or(theirs, and(eq(deliveries.id, one.id), open))
}

/** Says in their rows, too, that attempts in hand run: they are not over soon. */
export async function leaseInHand(store: Store, list: Claimed[], seconds: number): Promise<void> {
  if (list.length === 0) return
  const next_attempt_at = secondsFromNow(seconds)
  await store.tx(async (tx) => {
    const running = list.filter((one) => isStillInHand(one))
    await writeLeases(
      tx,
      running.map(({ id, max_attempts, owner }) => ({ id, max_attempts, owner, next_attempt_at })),
    )
  })
}

const writeLeases = updater(deliveries, {
  where: ["id", "max_attempts"],
  set: ["owner", "next_attempt_at"],
  clear: [],
  quiet: true, // in hand: see `ahead`
})

/** What was not begun, or cut off at the stop, is due again; no attempt is counted. */
export async function giveBack(store: Store, list: Lease[], seconds = 0): Promise<void> {
  if (list.length === 0) return
  const next_attempt_at = secondsFromNow(seconds)
  const back = store.tx(async (tx) => {
    for (const one of list) {
      await tx.update(deliveries).set({ owner: null, next_attempt_at }).where(leased(one))
    }
  })
  await back.finally(() => letGo(list))
}

/** Ends a delivery of which there is nothing left to send, or nobody to send it to. */
export async function drop(store: Store, one: Lease): Promise<void> {
  const over = { owner: null, next_attempt_at: null, completed_at: now() }
  const dropped = store.tx((tx) =>
    tx
      .update(deliveries)
      .set({ ...over, status: "exhausted" })
      .where(leased(one)),
  )
  await dropped.finally(() => letGo([one]))
}

/** Frees every lease, where nobody else can live: their owners are dead, their attempts unknown. */
export async function freeAll(store: Store): Promise<void> {
  await store.tx((tx) =>
    tx.update(deliveries).set({ owner: null, next_attempt_at: now() }).where(isLeased),
  )
}

/** Frees the leases that ran out: their holders died, or could not write the end. */
export async function sweep(store: Store): Promise<void> {
  const over = and(isLeased, lte(next_attempt_at, now()))
  const [first] = await store.read
    .select({ id: deliveries.id })
    .from(deliveries)
    .where(over)
    .limit(1)
  if (first) await store.tx((tx) => tx.update(deliveries).set({ owner: null }).where(over))
}

const { webhook_id, next_attempt_at, attempts, owner, by_hand } = deliveries

const taken = { webhook_id, now: next_attempt_at, limit: attempts, owner, lease: next_attempt_at }

const claimWhere = (which: SQL | undefined) =>
  prepared(taken, (tx: Tx, slot) => {
    const due = and(eq(webhook_id, slot.webhook_id), isOpen, lte(next_attempt_at, slot.now), which)
    const ids = tx.select({ id: deliveries.id }).from(deliveries).where(due)
    const first = ids.orderBy(next_attempt_at).limit(slot.limit as unknown as number)
    return tx
      .update(deliveries)
      .set({ owner: slot.owner, next_attempt_at: slot.lease })
      .where(inArray(deliveries.id, skipLocked(first)))
      .returning(claimedColumns)
  })

const claimOf = claimWhere(undefined)
const claimByHand = claimWhere(eq(by_hand, true))
