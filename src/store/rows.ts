import { and, asc, type Column, count, desc, eq, gt, lt, type SQL } from "drizzle-orm"
import type { SQLiteTable } from "drizzle-orm/sqlite-core"
import { isUuid } from "../core/ids"
import { held } from "./dialect"
import type { Reader, Tx } from "./store"

type TableWithId = SQLiteTable & { id: Column }

/** Which part of a list is wanted: after or before a row (keyset), or a number of rows in. */
export interface ListWindow extends Keyset {
  limit: number
  offset: number
}

const rowsOf = (db: Reader, table: SQLiteTable, where: SQL | undefined) =>
  db.select().from(table).where(where)

/** The row with this id among those that `among` selects. A text that is no id finds nothing. */
export async function rowById<Table extends TableWithId>(
  db: Reader,
  table: Table,
  id: string,
  among?: SQL,
): Promise<Table["$inferSelect"] | undefined> {
  const [row] = isUuid(id) ? await rowsOf(db, table, and(among, eq(table.id, id))) : []
  return row
}

/** As `rowById`, and no other transaction changes the row before this one ends. */
export async function holdById<Table extends TableWithId>(
  tx: Tx,
  table: Table,
  id: string,
  among?: SQL,
): Promise<Table["$inferSelect"] | undefined> {
  const [row] = isUuid(id) ? await held(rowsOf(tx, table, and(among, eq(table.id, id)))) : []
  return row
}

/** The rows of one page, newest first. */
async function newestRows<Table extends TableWithId>(
  db: Reader,
  table: Table,
  among: SQL | undefined,
  { limit, offset, ...stretch }: ListWindow,
): Promise<Table["$inferSelect"][]> {
  const { where, order } = newestFirst(table.id, stretch)
  return rowsOf(db, table, and(among, where)).orderBy(order).limit(limit).offset(offset)
}

/** Counts the rows one by one: for lists that stay short. Long ones keep a counter. */
export async function countRows(
  db: Reader,
  table: SQLiteTable,
  among: SQL | undefined,
): Promise<number> {
  const [row] = await db.select({ all: count() }).from(table).where(among)
  return row?.all ?? 0
}

/** How pages read a list: its rows in one window, their number, and one of them by its id. */
export interface RowList<Row> {
  /** Throws 404 where there is none. */
  find: (id: string) => Promise<unknown>
  list: (window: ListWindow) => Promise<Row[]>
  /** Null: there are too many to be counted. */
  total: () => Promise<number | null>
}

interface CountedList<Row> extends RowList<Row> {
  total: () => Promise<number>
}

/**
 * The rows of an owner, newest first. In a filtered list a page may begin at a row outside of the
 * filter, since a row can change between two pages. `missing` throws for a row of another owner.
 */
export const rowList = <Table extends TableWithId>(
  db: Reader,
  table: Table,
  { of, filter, missing }: { of: SQL | undefined; filter?: SQL | undefined; missing: () => never },
): CountedList<Table["$inferSelect"]> => ({
  find: async (id) => (await rowById(db, table, id, of)) ?? missing(),
  list: (window) => newestRows(db, table, and(of, filter), window),
  total: () => countRows(db, table, and(of, filter)),
})

/** The part of a list that is asked for: what follows a key, or what stands before it. */
export interface Keyset {
  after?: string | undefined
  before?: string | undefined
}

/**
 * Keys that rise with time, newest first. Of what stands before a key the nearest come first: the
 * page turns them around.
 */
export function newestFirst(column: Column, { after, before }: Keyset) {
  if (before !== undefined) return { where: gt(column, before), order: asc(column) }
  return { where: after === undefined ? undefined : lt(column, after), order: desc(column) }
}

/** Numbers that count up, the first one first. */
export function oldestFirst(column: Column, { after, before }: Keyset) {
  if (before !== undefined) return { where: lt(column, Number(before)), order: desc(column) }
  const where = after === undefined ? undefined : gt(column, Number(after))
  return { where, order: asc(column) }
}

interface InMemory<Row> {
  nameOf: (row: Row) => string
  order: "rising" | "falling"
}

/** The same of a list that is in memory, in the order of its names. A name may be gone by now. */
export function pageInMemory<Row>(
  rows: Row[],
  { nameOf, order }: InMemory<Row>,
  { after, before, offset, limit }: Keyset & { offset: number; limit: number },
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
