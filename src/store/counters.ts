import { and, eq, inArray, sql } from "drizzle-orm"
import { adder, prepared } from "./statements"
import type { Reader, Tx } from "./store"
import { counters } from "./tables"

/** On Postgres, where several nodes write at once. */
const SHARDS = 16

/** Changes of one transaction, added up by name before they are written. */
export type Changes = Map<string, number>

/** Adds to a total (or takes away), in the transaction that adds or removes the row. */
export const bump = (tx: Tx, project_id: string, name: string, by: number) =>
  bumpAll(tx, project_id, new Map([[name, by]]))

/** Several totals at once, always in the order of their names, so that no two writers deadlock. */
export async function bumpAll(tx: Tx, project_id: string, changes: Changes) {
  const shard = tx.isAlone ? 0 : Math.floor(Math.random() * SHARDS)
  const rows = [...changes.keys()].sort().flatMap((name) => {
    const value = changes.get(name) ?? 0
    return value === 0 ? [] : [{ project_id, name, shard, value }]
  })
  if (rows.length > FEW) return addAll(tx, rows)
  for (const row of rows) await addTo(tx, row)
}

/** So many are written one by one. A request may name thousands of tags: these are one round trip. */
const FEW = 16

/** As `bumpAll` for many projects, in one order as well. */
export async function bumpEach(tx: Tx, changes: Map<string, Changes>) {
  for (const project of [...changes.keys()].sort()) {
    await bumpAll(tx, project, changes.get(project) ?? new Map())
  }
}

export async function total(db: Reader, project_id: string, name: string): Promise<number> {
  const all = await totals(db, project_id, [name])
  return all.get(name) ?? 0
}

/** The sum of the shards, by name. A name that was never bumped is 0. */
export async function totals(db: Reader, project_id: string, names: string[]): Promise<Changes> {
  const ours = and(eq(counters.project_id, project_id), inArray(counters.name, names))
  const sums = new Map(names.map((name) => [name, 0]))
  for (const { name, value } of await db.select().from(counters).where(ours)) {
    sums.set(name, (sums.get(name) ?? 0) + value)
  }
  return sums
}

/** As `totals` for several owners, by their ids. An owner that never bumped one is absent. */
export async function totalsOf(
  db: Reader,
  owners: string[],
  names: string[],
): Promise<Map<string, Changes>> {
  const sums = new Map<string, Changes>()
  if (owners.length === 0) return sums
  const theirs = and(inArray(counters.project_id, owners), inArray(counters.name, names))
  for (const row of await db.select().from(counters).where(theirs)) {
    const ours: Changes = sums.get(row.project_id) ?? new Map()
    sums.set(row.project_id, ours.set(row.name, (ours.get(row.name) ?? 0) + row.value))
  }
  return sums
}

const { project_id, name, shard, value } = counters

const addAll = adder(counters, ["project_id", "name", "shard"], ["value"])

const addTo = prepared({ project_id, name, shard, value }, (tx: Tx, row) =>
  tx
    .insert(counters)
    .values(row)
    .onConflictDoUpdate({
      target: [project_id, name, shard],
      set: { value: sql`${value} + excluded.value` },
    }),
)
