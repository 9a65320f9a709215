import { and, inArray, isNull, notInArray, or, type SQL } from "drizzle-orm"
import { now } from "../core/time"
import type { Store } from "../store/store"
import { CRASH_HOLD } from "./crash-guard"
import type { AnyWorkRows } from "./holds"
import { pausedQueues } from "./tables"
import { HELD, RESTORE_HOLD } from "./work-item"
import { isHeld, isLeased, isReady } from "./work-rows"

/** Rows of one transaction: each such update takes some 50 ms. */
const AT_ONCE = 5000

/** A table of work, and which of its rows are held. */
export interface HeldTable {
  rows: AnyWorkRows
  which?: SQL | undefined
}

/**
 * Holds all open work of these tables under RESTORE_HOLD: what waits, what was claimed, and what
 * another hold keeps. What ended the process again and again stays under its own hold. No loop may
 * run. Returns how many rows that were; it may be called again after a crash.
 */
export async function holdOpenWork(
  store: Store,
  tables: HeldTable[],
  progress: (held: number) => void = () => {},
): Promise<number> {
  // Before the rows, because it says that they are not to be released. Without a row it ends by itself.
  const row = { queue: RESTORE_HOLD, paused_by: null, paused_at: now() }
  await store.tx((tx) => tx.insert(pausedQueues).values(row).onConflictDoNothing())
  let held = 0
  for (const { rows, which } of tables) {
    for (const state of [isReady, isLeased, isHeldElsewhere(rows)]) {
      let some: number
      do {
        some = await holdSome(store, rows, and(state, which))
        held += some
        if (some > 0) progress(held)
      } while (some === AT_ONCE)
    }
  }
  return held
}

const isHeldElsewhere = ({ table: { owner } }: AnyWorkRows) =>
  and(isHeld, or(isNull(owner), notInArray(owner, [RESTORE_HOLD, CRASH_HOLD])))

const holdSome = (store: Store, { table, under_hold }: AnyWorkRows, which: SQL | undefined) =>
  store.tx(async (tx) => {
    const { id } = table
    const some = tx.select({ id }).from(table).where(which).limit(AT_ONCE)
    const taken = { state: HELD, owner: RESTORE_HOLD, lease_until: null, ...under_hold.takes }
    const rows = await tx.update(table).set(taken).where(inArray(id, some)).returning({ id })
    return rows.length
  })
