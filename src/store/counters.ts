import { and, eq, inArray, like, sql, sum } from "drizzle-orm"
import { forUpdate } from "./dialect"
import { adder, prepared, remover } from "./statements"
import type { Reader, Store, Tx } from "./store"
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

/** Names of one look. */
const EMPTY_AT_ONCE = 200

/**
 * Removes the counters of a project that begin like this and are 0, which is what a counter without a row is
 * as well: a name that somebody made up, such as a tag, would stay for ever. Returns how many names went.
 */
export async function removeEmpty(store: Store, owner: string, prefix: string): Promise<number> {
  const ours = and(eq(counters.project_id, owner), like(counters.name, `${prefix}%`))
  const sums = store.read.select({ name: counters.name }).from(counters).where(ours)
  const empty = await sums
    .groupBy(counters.name)
    .having(eq(sum(counters.value), 0))
    .limit(EMPTY_AT_ONCE)
  const names = empty.map((row) => row.name)
  return names.length === 0 ? 0 : store.tx((tx) => removeEmptyOf(tx, owner, names))
}

/**
 * The same of these names. It locks all their shards in the order in which writers do, so it belongs into a
 * transaction that bumped nothing before.
 */
export async function removeEmptyOf(tx: Tx, owner: string, names: string[]): Promise<number> {
  const ours = and(eq(counters.project_id, owner), inArray(counters.name, names))
  const rows = await forUpdate(
    tx.select().from(counters).where(ours).orderBy(counters.name, counters.shard),
  )
  const all = Map.groupBy(rows, (row) => row.name)
  const empty = [...all.values()].filter(
    (list) => list.reduce((found, row) => found + row.value, 0) === 0,
  )
  // Another shard may have been added meanwhile: that one stays, and is the sum.
  await removeRows(tx, empty.flat())
  return empty.length
}

const removeRows = remover(counters, ["project_id", "name", "shard"], { quiet: true })

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
