import { and, eq, inArray } from "drizzle-orm"
import { log } from "../core/log"
import { now } from "../core/time"
import { DEAD } from "../jobs/work-item"
import { isReady } from "../jobs/work-rows"
import { perStore } from "../store/cached"
import { skipLocked } from "../store/dialect"
import type { Store, Tx } from "../store/store"
import { isHeldByEndpoint, notInFlight } from "./delivery-rows"
import { deliveries } from "./tables"
import { count, totalsOfOne } from "./totals"

/** Open deliveries of one endpoint (contract 30, section 2). */
export const MOST_OPEN = 100_000

const BATCH = 500

/** Where other nodes plan deliveries too, the total is looked at again after so many. */
const LOOK_AFTER = 500

const MOST_ENDPOINTS = 10_000

/** Which endpoints may have too many open deliveries, as far as this process planned them. */
class Backlogs {
  /** How many more deliveries may be planned before the total is looked at. */
  readonly #room = new Map<string, number>()
  readonly #full = new Set<string>()

  /** After the commit. An endpoint that is not known may have any number. */
  planned(webhook_ids: string[]) {
    for (const id of webhook_ids) {
      const room = (this.#room.get(id) ?? 0) - 1
      if (room < 0) this.#full.add(id)
      else this.#room.set(id, room)
    }
  }

  take(): string[] {
    const ids = [...this.#full]
    this.#full.clear()
    return ids
  }

  setRoom(id: string, room: number) {
    if (this.#room.size >= MOST_ENDPOINTS) this.#room.clear()
    this.#room.set(id, room)
  }
}

export const backlogsOf = perStore(() => new Backlogs())

/** Ends the oldest open deliveries of endpoints that have too many, those that are held first. */
export async function endBacklogs(store: Store): Promise<void> {
  const backlogs = backlogsOf(store.read)
  for (const id of backlogs.take()) {
    const left = MOST_OPEN - (await totalsOfOne(store.read, id)).open
    if (left < 0) await endOldest(store, id, -left)
    const room = Math.max(0, left)
    backlogs.setRoom(id, store.isAlone ? room : Math.min(room, LOOK_AFTER))
  }
}

async function endOldest(store: Store, webhook_id: string, number: number) {
  let left = number
  while (left > 0) {
    const ended = await store.tx((tx) => endSome(tx, webhook_id, Math.min(left, BATCH)))
    if (ended === 0) break // the others are attempted now
    left -= ended
  }
  log.warn("an endpoint had too many open deliveries, and the oldest ended", {
    ...{ webhook_id, ended: number - left, most: MOST_OPEN },
  })
}

async function endSome(tx: Tx, webhook: string, most: number): Promise<number> {
  const { id, project_id, webhook_id, run_at, by_hand } = deliveries
  const ours = eq(webhook_id, webhook)
  const rows = tx.select({ id, project_id, webhook_id }).from(deliveries)
  // Each of the two walks an index.
  const heldOnes = rows.where(and(ours, isHeldByEndpoint)).orderBy(run_at).limit(most)
  const held = await skipLocked(heldOnes)
  const waits = and(ours, isReady, eq(by_hand, false), notInFlight(tx))
  const next = tx.select({ id, project_id, webhook_id }).from(deliveries).where(waits)
  const rest = most - held.length
  const waiting = rest === 0 ? [] : await skipLocked(next.orderBy(run_at, id).limit(rest))
  const all = [...held, ...waiting]
  if (all.length === 0) return 0
  const ended = { status: "exhausted", state: DEAD, run_at: now() } as const
  const ids = all.map((row) => row.id)
  await tx
    .update(deliveries)
    .set({ ...ended, last_error: "backlog_limit" })
    .where(inArray(id, ids))
  await count(tx, all, { open: -1 })
  await count(tx, held, { held: -1 })
  return all.length
}
