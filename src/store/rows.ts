import {
  and,
  asc,
  type Column,
  count,
  desc,
  eq,
  getTableColumns,
  gt,
  gte,
  inArray,
  lt,
  lte,
  type SQL,
  sql,
} from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import { firstIdAt, isUuid } from "../core/ids"
import { millisFrom } from "../core/time"
import { forUpdate } from "./columns"
import { readHeavy } from "./heavy-reads"
import type { HeavyRead, Reader, Select, Store, Tx } from "./store"

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
export async function rowForUpdate<Table extends TableWithId>(
  tx: Tx,
  table: Table,
  id: string,
  among?: SQL,
): Promise<Table["$inferSelect"] | undefined> {
  const [row] = isUuid(id) ? await forUpdate(rowsOf(tx, table, and(among, eq(table.id, id)))) : []
  return row
}

interface RowsToRemove {
  id: SQLiteColumn
  /** Also asked when they are removed: a row that was renewed meanwhile stays. */
  old: SQL | undefined
  most: number
}

/** Removes some old rows of a table, so that a sweep never holds the writer for long. Returns how many were found. */
export async function removeSome(
  store: Store,
  table: SQLiteTable,
  { id, old, most }: RowsToRemove,
): Promise<number> {
  const some = await store.read.select({ id }).from(table).where(old).limit(most)
  const ids = some.map((row) => row.id)
  if (ids.length > 0) await store.tx((tx) => tx.delete(table).where(and(inArray(id, ids), old)))
  return ids.length
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

/** Some rows of a list, in its order. */
export interface FoundRows<Row> {
  rows: Row[]
  /** Where the filter stopped before the end of the list: the key of the last row that it looked at. */
  end?: string | undefined
}

/** How pages read a list: its rows in one window, their number, and one of them by its id. */
export interface RowList<Row> {
  /** Throws 404 where there is none. */
  find: (id: string) => Promise<unknown>
  list: (window: ListWindow) => Promise<FoundRows<Row>>
  /** Null: there are too many to be counted. */
  total: () => Promise<number | null>
}

/** Rows that name ids, and that an index holds, in the order of the ids where nothing else is said. */
export interface IdSource {
  rows: SQLiteTable
  id: Column
  where: SQL | undefined
}

/** A list of rows with ids, newest first. */
export interface BoundedList<Row> {
  /** The project, or the account. It has one heavy read at a time. */
  owner: string
  table: TableWithId
  /** Of its columns, those that a row has. Default: all. */
  fields?: { [Name in keyof Row]: SQLiteColumn }
  /** The index that the list goes along: one of its table, or of another one that names its ids. */
  along: IdSource
  /**
   * What that index does not know, and what is therefore asked of row by row. Where an index of its own answers it, a
   * function gets what bounds the rows.
   */
  filter: SQL | ((named: SQL | undefined) => SQL | undefined) | undefined
}

/** Rows at which a filter looks in one request, where it has no index of its own. */
const MOST_FILTERED = 3000

/** The rows that a filter looks at on the event loop. Where they do not fill the page, another thread goes on. */
const FEW = 200

/** Of more rows of an index the number is not told: pages by number end there, too. */
const MOST_COUNTED = 10_000

/**
 * A list of which no page costs more as it grows. Along its index it reads what the page shows. A filter
 * looks at 3,000 rows, as a heavy read, and `end` tells where it stopped. The total is null where rows were not
 * counted: beyond 10,000 of an index, and beyond 3,000 that a filter looks at.
 *
 * The index has to hold the conditions of `along` and then the id. Everything else belongs into `filter`.
 */
export function boundedList<Row extends object>(
  db: Reader,
  list: BoundedList<Row>,
): Pick<RowList<Row>, "list" | "total"> {
  if (!list.filter) {
    return {
      list: async (window) => ({ rows: await selectIn(db, list, window) }),
      total: () => countAlong(db, list.along),
    }
  }
  let known: number | null | undefined
  return {
    async list(window) {
      const found = await filtered(db, list, window)
      known = found.end === undefined ? allOf(found.rows, window) : null
      return found
    },
    total: async () => (known === undefined ? countFiltered(db, list) : known),
  }
}

/** The number of all rows, where those of this window are the last ones; undefined where that is open. */
function allOf(rows: unknown[], { limit, offset, after, before }: ListWindow) {
  const is_last = rows.length < limit && (rows.length > 0 || offset === 0)
  return is_last && (after ?? before) === undefined ? offset + rows.length : undefined
}

/** How many rows the source has; null where there are more than are counted. */
export async function countAlong(db: Reader, source: IdSource): Promise<number | null> {
  const all = await countUpTo(db, source, MOST_COUNTED + 1)
  return all > MOST_COUNTED ? null : all
}

const FROM_THE_BEGINNING: Keyset = {}

async function filtered<Row>(
  db: Reader,
  list: BoundedList<Row>,
  window: ListWindow,
): Promise<FoundRows<Row>> {
  const few = await endOf(inPlace(db), list, window, FEW)
  const rows = await selectIn(db, list, window, few)
  if (few === undefined || rows.length === window.limit) return { rows }
  return readHeavy(db, list.owner, async (read) => {
    const end = await endOf(read, list, window, MOST_FILTERED)
    return { rows: await read((thread) => selectIn(thread, list, window, end)), end }
  })
}

async function countFiltered<Row>(db: Reader, list: BoundedList<Row>): Promise<number | null> {
  const all = (reader: Reader) =>
    reader
      .select({ n: count() })
      .from(list.table)
      .where(conditionOf(reader, list, FROM_THE_BEGINNING))
  const [row] =
    (await endOf(inPlace(db), list, FROM_THE_BEGINNING, FEW)) === undefined
      ? await all(db)
      : await readHeavy(db, list.owner, async (read) => {
          const end = await endOf(read, list, FROM_THE_BEGINNING, MOST_FILTERED)
          return end === undefined ? read(all) : []
        })
  return row?.n ?? null
}

const inPlace =
  (db: Reader): HeavyRead =>
  async (build) =>
    await build(db)

/** The id of the row at this place of a range; undefined if it is the last row, or if there is none. */
async function endOf<Row>(
  read: HeavyRead,
  { along: { rows, id, where } }: BoundedList<Row>,
  range: Keyset,
  place: number,
): Promise<string | undefined> {
  const { where: beyond, order } = newestFirst(id, range)
  const [last, next] = await read((db) =>
    db
      .select({ id: id as SQLiteColumn })
      .from(rows)
      .where(and(where, beyond))
      .orderBy(order)
      .limit(2)
      .offset(place - 1),
  )
  return next && (last?.id as string)
}

function selectIn<Row>(
  db: Reader,
  list: BoundedList<Row>,
  { limit, offset, ...range }: ListWindow,
  end?: string,
): Select<Row> {
  const { table, fields, along, filter } = list
  const { order } = newestFirst(table.id, range)
  const rows = db.select(fields ?? getTableColumns(table)).from(table as SQLiteTable)
  if (filter || along.id === table.id) {
    const found = rows.where(conditionOf(db, list, range, end)).orderBy(order)
    return found.limit(limit).offset(offset) as unknown as Select<Row>
  }
  // The ids of the page alone: a database collects all that such a condition selects.
  const ids = db.select({ id: along.id as SQLiteColumn }).from(along.rows)
  const { where: beyond, order: alike } = newestFirst(along.id, range)
  const some = ids.where(and(along.where, beyond)).orderBy(alike).limit(limit).offset(offset)
  return rows.where(inArray(table.id, some)).orderBy(order) as unknown as Select<Row>
}

/** The bounds of the range belong to the index that the list goes along. */
function conditionOf<Row>(
  db: Reader,
  { table: { id }, along, filter }: BoundedList<Row>,
  range: Keyset,
  end?: string,
): SQL | undefined {
  const { where: beyond } = newestFirst(along.id, range)
  const bound = range.before === undefined ? gte : lte
  const named = and(along.where, beyond, end === undefined ? undefined : bound(along.id, end))
  const asked = typeof filter === "function" ? filter(named) : filter
  if (along.id === id) return and(named, asked)
  return and(
    inArray(
      id,
      db
        .select({ id: along.id as SQLiteColumn })
        .from(along.rows)
        .where(named),
    ),
    asked,
  )
}

/** How many rows the source has, at most `most`. */
export async function countUpTo(db: Reader, { rows, where }: IdSource, most: number) {
  const some = sql`(SELECT 1 FROM ${rows} WHERE ${where ?? sql`1 = 1`} LIMIT ${most}) AS some_rows`
  const [row] = await db.select({ all: sql<number>`count(*)` }).from(some)
  return Number(row?.all ?? 0)
}

/** Whose rows a list has, and which of them. */
interface RowsOf {
  of: SQL | undefined
  /** Throws for a row of another owner. */
  missing: () => never
}

interface AllRows extends RowsOf {
  filter?: undefined
}

interface FilteredRows extends RowsOf, Pick<BoundedList<unknown>, "owner" | "filter"> {
  /** Conditions that one index has behind `of`, before the id. */
  indexed?: SQL | undefined
}

/**
 * The rows of an owner, newest first, as `boundedList` reads them. In a filtered list a page may begin at a row
 * outside of the filter, since a row can change between two pages.
 */
export const rowList = <Table extends TableWithId>(
  db: Reader,
  table: Table,
  list: AllRows | FilteredRows,
): RowList<Table["$inferSelect"]> => {
  const { of, missing, owner, filter, indexed } = {
    owner: "",
    filter: undefined,
    indexed: undefined,
    ...list,
  }
  const along = { rows: table, id: table.id, where: and(of, indexed) }
  return {
    find: async (id) => (await rowById(db, table, id, of)) ?? missing(),
    ...boundedList<Table["$inferSelect"]>(db, { owner, table, along, filter }),
  }
}

/** An id is made a little before or after the row's time is read. */
export const SKEW_MS = 60_000

/**
 * The bounds of a time (inclusive and exclusive, ISO 8601) as ids, which rise with time: so an index skips what is
 * outside. What is made within a minute of a bound, the column of the time has to tell.
 */
export const idsBetween = (id: Column, { after, before }: TimeBounds): SQL | undefined =>
  and(
    after === undefined ? undefined : gte(id, firstIdAt(millisFrom(after) - SKEW_MS)),
    before === undefined ? undefined : lt(id, firstIdAt(millisFrom(before) + SKEW_MS)),
  )

export const timesBetween = (time: Column, { after, before }: TimeBounds): SQL | undefined =>
  and(
    after === undefined ? undefined : gte(time, after),
    before === undefined ? undefined : lt(time, before),
  )

interface TimeBounds {
  after?: string | undefined
  before?: string | undefined
}

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

/** A list that is in memory, in the order of its names. */
export const listInMemory = <Row>(
  rows: Row[],
  { missing, ...names }: InMemory<Row> & { missing: (name: string) => never },
): RowList<Row> => ({
  find: async (name) => rows.find((row) => names.nameOf(row) === name) ?? missing(name),
  list: async (window) => ({ rows: pageInMemory(rows, names, window) }),
  total: async () => rows.length,
})

/** A name may be gone by now. */
function pageInMemory<Row>(
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
