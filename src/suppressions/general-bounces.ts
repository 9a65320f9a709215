import { and, eq, inArray, lte, sql } from "drizzle-orm"
import { now, secondsFromNow } from "../core/time"
import { forUpdate } from "../store/dialect"
import { newRowInserter } from "../store/statements"
import type { Store, Tx } from "../store/store"
import { generalBounces } from "./tables"

/** Contract 20, section 3. */
const APART_SECONDS = 86_400
const WITHIN_SECONDS = 7 * 86_400

const PURGE_LIMIT = 500

/**
 * Remembers permanent refusals that name nothing, of addresses in comparable form. Returns the addresses that had one a
 * day or more before, and within seven days.
 */
export async function repeatedly(
  tx: Tx,
  project_id: string,
  addresses: string[],
): Promise<Set<string>> {
  const at = now()
  // In one order everywhere, so that no two transactions wait for each other's rows.
  const each = [...new Set(addresses)].sort()
  const rows = each.map((address) => ({ project_id, address, first_at: at, latest_at: at }))
  const fresh = await insertBounces(tx, rows)
  const known = each.filter((address) => !fresh.has(address))
  if (known.length === 0) return new Set()
  const { address, first_at, latest_at } = generalBounces
  const ours = (some: string[]) =>
    and(eq(generalBounces.project_id, project_id), inArray(address, some))
  const before = await forUpdate(
    tx.select().from(generalBounces).where(ours(known)).orderBy(address),
  )
  const since = secondsFromNow(-WITHIN_SECONDS)
  const until = secondsFromNow(-APART_SECONDS)
  const counts = (time: string) => time > since && time <= until
  const again = before.filter((row) => counts(row.first_at) || counts(row.latest_at))
  const full = new Set(again.map((row) => row.address))
  await tx.delete(generalBounces).where(ours([...full]))
  // Between the two times lies less than a day, so they tell all that a later one needs to know.
  const [after, today] = [since, at].map((time) => sql.param(time, latest_at))
  const first = sql`CASE WHEN ${first_at} > ${after} THEN ${first_at} WHEN ${latest_at} > ${after} THEN ${latest_at} ELSE ${today} END`
  await tx.update(generalBounces).set({ first_at: first, latest_at: at }).where(ours(known))
  return full
}

const insertBounces = newRowInserter(generalBounces, "address")

/** Forgets up to 500 addresses whose refusals count no more. Returns how many. */
export async function purgeGeneralBounces(store: Store): Promise<number> {
  const { project_id, address, latest_at } = generalBounces
  const old = lte(latest_at, secondsFromNow(-WITHIN_SECONDS))
  const rows = await store.read.select().from(generalBounces).where(old).limit(PURGE_LIMIT)
  if (rows.length === 0) return 0
  await store.tx(async (tx) => {
    for (const [owner, some] of Map.groupBy(rows, (row) => row.project_id)) {
      const these = inArray(
        address,
        some.map((row) => row.address),
      )
      await tx.delete(generalBounces).where(and(eq(project_id, owner), these, old))
    }
  })
  return rows.length
}
