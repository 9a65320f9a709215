import { and, eq, inArray, like, sum } from "drizzle-orm"
import { forUpdate } from "./columns"
import { adder, remover } from "./statements"
import type { Reader, Store, Tx } from "./store"
import { counters } from "./tables"

/** On Postgres. */
const SHARDS = 16

/** Totals by name. */
export type Totals = Map<string, number>

/** Something that is added to a total of an owner: a project, as a rule. */
export interface Bump {
  owner: string
  name: string
  by: number
}

/** Adds to a total (or takes away), in the transaction that adds or removes the row. */
export const bump = (tx: Tx, owner: string, name: string, by: number) =>
  bumpAll(tx, [{ owner, name, by }])

/** Several totals at once. */
export const bumpAll = (tx: Tx, bumps: Bump[]): Promise<void> =>
  addTo(
    tx,
    bumps.map(({ owner: project_id, name, by: value }) => ({ project_id, name, value })),
  )

const addTo = adder(counters, ["project_id", "name"], ["value"], SHARDS)

export async function total(db: Reader, project_id: string, name: string): Promise<number> {
  const all = await totals(db, project_id, [name])
  return all.get(name) ?? 0
}

/** The sum of the shards, by name. A name that was never bumped is 0. */
export async function totals(db: Reader, project_id: string, names: string[]): Promise<Totals> {
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
): Promise<Map<string, Totals>> {
  const sums = new Map<string, Totals>()
  if (owners.length === 0) return sums
  const theirs = and(inArray(counters.project_id, owners), inArray(counters.name, names))
  for (const row of await db.select().from(counters).where(theirs)) {
    const ours: Totals = sums.get(row.project_id) ?? new Map()
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
