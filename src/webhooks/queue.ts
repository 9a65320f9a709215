import { and, eq, inArray, isNull, lte, or, type SQL, sql } from "drizzle-orm"
import { newId } from "../core/ids"
import { millis, now, secondsFromNow } from "../core/time"
import { engine } from "../store/columns"
import { held, skipLocked } from "../store/locks"
import { prepared, updater } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import { inHandOf, isInHand, isStillInHand, letGo, takeInHand } from "./in-hand"
import { deliveries, webhooks } from "./tables"
import { isLeased, isOpen } from "./walk"

/** Longer than any attempt can take, with its end written: nobody need keep it alive. */
const LEASE_MARGIN_SECONDS = 60

export const leaseSeconds = (timeout_ms: number): number => timeout_ms / 1000 + LEASE_MARGIN_SECONDS

/** A delivery that is ours to attempt. `in_hand`: its row does not say so, or did not at first. */
export type Claimed = Awaited<ReturnType<typeof claimOf>>[number] & { in_hand?: true }

export interface Wish {
  webhook_id: string
  /** At most so many of its deliveries. */
  room: number
  rate_limit: number | null
  /** The endpoint is disabled: only what was asked for by hand may go. */
  only_by_hand: boolean
}

/**
 * Takes due deliveries of each endpoint, oldest due first. Where others claim too, and where a rate
 * is to be kept, the rows are leased to a fresh owner; else they are ours because nobody else is.
 */
export async function claim(
  store: Store,
  wishes: Wish[],
  lease_seconds: number,
): Promise<Claimed[]> {
  const isLight = ({ rate_limit }: Wish) => engine === "sqlite" && rate_limit === null
  const claimed: Claimed[] = []
  const light = wishes.filter(isLight)
  for (const by_hand of [false, true]) {
    const some = light.filter(({ only_by_hand }) => only_by_hand === by_hand)
    if (some.length > 0) claimed.push(...(await takeInMemory(store.read, some, by_hand)))
  }
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

/** Those in hand are still in the index of what is due: so many more are looked at. */
async function takeInMemory(db: Reader, wishes: Wish[], by_hand: boolean): Promise<Claimed[]> {
  const look = by_hand ? dueByHand : dueOf
  const rooms = new Map(wishes.map(({ webhook_id, room }) => [webhook_id, room]))
  const owner = newId()
  const claimed: Claimed[] = []
  const sizes = Map.groupBy(wishes, (wish) => roundedUp(wish.room + inHandOf(wish.webhook_id)))
  for (const [limit, some] of sizes) {
    const webhook_ids = JSON.stringify(some.map(({ webhook_id }) => webhook_id))
    for (const row of await look(db, { webhook_ids, now: now(), limit })) {
      const room = rooms.get(row.webhook_id) ?? 0
      if (room === 0 || isInHand(row.id)) continue
      rooms.set(row.webhook_id, room - 1)
      takeInHand(row, owner)
      claimed.push({ ...row, owner, in_hand: true })
    }
  }
  return claimed
}

/** To a power of two, so that few queries serve all endpoints. */
const roundedUp = (count: number) => 2 ** Math.ceil(Math.log2(Math.max(1, count)))

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

const { webhook_id, next_attempt_at, attempts, owner, by_hand } = deliveries

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

/** As `claimWhere`, of several endpoints, only to look at. */
const dueWhere = (which: SQL) =>
  prepared(
    { webhook_ids: deliveries.event_type, now: next_attempt_at, limit: attempts },
    (db: Reader, slot) => {
      const first = sql`(SELECT due.id FROM deliveries AS due WHERE due.webhook_id = wish.value
        AND due.status IN ('pending', 'failed') AND due.owner IS NULL
        AND due.next_attempt_at <= ${slot.now} ${which}
        ORDER BY due.next_attempt_at LIMIT ${slot.limit})`
      return db
        .select(columns)
        .from(sql`json_each(${slot.webhook_ids}) AS wish`)
        .innerJoin(deliveries, sql`${deliveries.id} IN ${first}`)
    },
  )

const dueOf = dueWhere(sql``)
const dueByHand = dueWhere(sql`AND due.by_hand`)
