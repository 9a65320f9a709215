import { and, count, eq, gt, inArray } from "drizzle-orm"
import { now } from "../core/time"
import type { Reader, Store, Tx } from "../store/store"
import { wakeUpOf } from "./wake-ups"
import { READY, type WorkRow } from "./work-item"
import { isHeld, type WorkRows } from "./work-rows"

/** A table of work with any kind of rows. */
export type AnyWorkRows = Pick<WorkRows<WorkRow>, "name" | "table" | "freeOf">

const AT_ONCE = 500

const PROVIDER_HOLD = "provider:"

/**
 * The name under which a project's mail is held while no provider can deliver it; an operator's
 * pause has another name.
 */
export const providerHold = (project_id: string) => `${PROVIDER_HOLD}${project_id}`

/** The project whose mail is held so; undefined where another hold holds it. */
export const heldProject = (by: string): string | undefined =>
  by.startsWith(PROVIDER_HOLD) ? by.slice(PROVIDER_HOLD.length) : undefined

const FREE = { state: READY, owner: null }

const underHold = ({ table }: AnyWorkRows, by: string) => and(isHeld, eq(table.owner, by))

/** The holds that hold rows of the table now, one seek each. */
export async function holders(db: Reader, { table }: AnyWorkRows): Promise<string[]> {
  const found: string[] = []
  for (;;) {
    const after = found.at(-1)
    const beyond = and(isHeld, after === undefined ? undefined : gt(table.owner, after))
    const rows = db.select({ owner: table.owner }).from(table).where(beyond)
    const [next] = await rows.orderBy(table.owner).limit(1)
    if (!next?.owner) return found
    found.push(next.owner)
  }
}

/** Releases one row from a hold, to be tried now. Returns whether it was under it. */
export async function unholdOne(tx: Tx, rows: AnyWorkRows, by: string, id: string) {
  const { table, name } = rows
  const one = and(eq(table.id, id), underHold(rows, by))
  const freed = await tx
    .update(table)
    .set({ ...FREE, run_at: now() })
    .where(one)
    .returning({ id: table.id })
  if (freed.length === 0) return false
  tx.afterCommit(wakeUpOf(tx, name).wakeUp)
  return true
}

/** How many rows are under a hold. */
export async function countHeld(db: Reader, rows: AnyWorkRows, by: string): Promise<number> {
  const counted = db.select({ n: count() }).from(rows.table)
  const [row] = await counted.where(underHold(rows, by))
  return Number(row?.n ?? 0)
}

/** Releases what is under a hold, some at a time. Returns how many rows that were. */
export async function unhold(store: Store, rows: AnyWorkRows, by: string): Promise<number> {
  const { table, name } = rows
  const under = underHold(rows, by)
  const some = await store.read.select({ id: table.id }).from(table).where(under).limit(AT_ONCE)
  if (some.length === 0) return 0
  const ids = some.map(({ id }) => id)
  await store.tx(async (tx) => {
    await tx
      .update(table)
      .set(FREE)
      .where(and(inArray(table.id, ids), under))
    tx.afterCommit(wakeUpOf(tx, name).wakeUp)
  })
  return some.length
}
