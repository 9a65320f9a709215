import { asc, type Column, desc, gt, lt } from "drizzle-orm"

/** The part of a list that is asked for: what follows a key, or what stands before it. */
export interface Stretch {
  after?: string | undefined
  before?: string | undefined
}

/**
 * Keys that rise with time, newest first. Of what stands before a key the nearest come first: the
 * page turns them around.
 */
export function newestFirst(column: Column, { after, before }: Stretch) {
  if (before !== undefined) return { where: gt(column, before), order: asc(column) }
  return { where: after === undefined ? undefined : lt(column, after), order: desc(column) }
}

/** Numbers that count up, the first one first. */
export function oldestFirst(column: Column, { after, before }: Stretch) {
  if (before !== undefined) return { where: lt(column, Number(before)), order: desc(column) }
  const where = after === undefined ? undefined : gt(column, Number(after))
  return { where, order: asc(column) }
}

interface InMemory<Row> {
  nameOf: (row: Row) => string
  order: "rising" | "falling"
}

/** The same of a list that is in memory, in the order of its names. A name may be gone by now. */
export function cutOut<Row>(
  rows: Row[],
  { nameOf, order }: InMemory<Row>,
  { after, before, offset, limit }: Stretch & { offset: number; limit: number },
): Row[] {
  const follows = (row: Row, name: string) =>
    order === "rising" ? nameOf(row) > name : nameOf(row) < name
  const precedes = (row: Row, name: string) => nameOf(row) !== name && !follows(row, name)
  if (before !== undefined) {
    return rows
      .filter((row) => precedes(row, before))
      .reverse()
      .slice(0, limit)
  }
  const rest = after === undefined ? rows.slice(offset) : rows.filter((row) => follows(row, after))
  return rest.slice(0, limit)
}
