import { and, eq, lt } from "drizzle-orm"
import { log } from "../core/log"
import { isoFrom, millis } from "../core/time"
import { held } from "../store/locks"
import type { Store, Tx } from "../store/store"
import { rateWindows } from "./tables"
import type { Window } from "./windows"

/** A tenth above the limit may be given out, because what idle nodes hold is used by nobody. */
const SPARE = 10

/** The part of the rest that one node takes at a time: large at first, single at the end. */
const PART = 4

const KEPT_MILLISECONDS = 120_000

/**
 * The windows of all nodes on one database: each node leases a part of a limit and counts it in
 * its own memory. Together they never pass the limit by more than a tenth.
 */
export class SharedWindows {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** Returns how many more requests this node may let in; 0 when the window is used up. */
  lease(name: string, window: Window, limit: number): Promise<number> {
    window.leasing ??= this.#lease(name, window, limit).finally(() => {
      window.leasing = undefined
    })
    return window.leasing
  }

  async #lease(name: string, window: Window, limit: number): Promise<number> {
    const ceiling = limit + Math.floor(limit / SPARE)
    try {
      const ends = isoFrom(window.ends)
      const { granted, given } = await this.#store.tx((tx) => take(tx, { name, ends, ceiling }))
      window.leased += granted
      window.given = given
      return granted
    } catch (error) {
      log.debug("the shared request counter of all nodes could not be updated", { error })
      window.leased += 1 // the request itself will tell what is wrong with the storage
      return 1
    }
  }
}

async function take(
  tx: Tx,
  { name, ends, ceiling }: { name: string; ends: string; ceiling: number },
) {
  const mine = and(eq(rateWindows.name, name), eq(rateWindows.ends, ends))
  await tx.insert(rateWindows).values({ name, ends, given: 0 }).onConflictDoNothing()
  const [row] = await held(tx.select().from(rateWindows).where(mine))
  const rest = Math.max(0, ceiling - (row?.given ?? 0))
  const granted = Math.min(rest, Math.max(1, Math.floor(rest / PART)))
  const given = (row?.given ?? 0) + granted
  if (granted > 0) await tx.update(rateWindows).set({ given }).where(mine)
  return { granted, given }
}

/** Forgets the windows that are over. */
export const purgeWindows = (store: Store) =>
  store.tx((tx) =>
    tx.delete(rateWindows).where(lt(rateWindows.ends, isoFrom(millis() - KEPT_MILLISECONDS))),
  )
