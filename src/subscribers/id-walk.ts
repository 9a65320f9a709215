import { and, asc, type Column, desc, eq, exists, inArray, type SQL, sql } from "drizzle-orm"
import type { SQLiteTable } from "drizzle-orm/sqlite-core"
import { nextTurn } from "../core/time"
import { type ListWindow, newestFirst } from "../store/rows"
import type { Reader } from "../store/store"
import { subscribers } from "./tables"

/** Rows of another table that name subscribers, and that an index holds in the order of their ids. */
export interface IdSource {
  rows: SQLiteTable
  id: Column
  where: SQL | undefined
}

/** Whether a subscriber is named by the source. */
export const isNamedBy = (db: Reader, { rows, id, where }: IdSource): SQL =>
  exists(
    db
      .select({ one: sql`1` })
      .from(rows)
      .where(and(where, eq(id, subscribers.id))),
  )

/** How many rows the source has, at most `most`. */
export async function countUpTo(db: Reader, { rows, where }: IdSource, most: number) {
  const some = sql`(SELECT 1 FROM ${rows} WHERE ${where} LIMIT ${most}) AS some_rows`
  const [row] = await db.select({ all: sql<number>`count(*)` }).from(some)
  return Number(row?.all ?? 0)
}

interface Walked {
  /** Together they name all that may be found. They are walked side by side. */
  sources: IdSource[]
  /** The sources are short, or too many to be walked side by side: their ids are read and sorted. */
  is_sorted: boolean
  /** What must be true of the subscriber, too. */
  where: SQL | undefined
}

/** The ids of one window of what the sources name, each once, newest first. */
export const walkIds = (db: Reader, walked: Walked, window: ListWindow): Promise<string[]> =>
  walked.is_sorted && walked.where
    ? checkedIds(db, walked, walked.where, window)
    : foundIds(db, walked, window)

/** Ids that are looked at together, at first; then four times as many, up to the most. */
const LOOKED_AT = 64
const MOST_LOOKED_AT = 1024

/** Sorts the ids first, and asks only of as many of them as the window needs what else must be true. */
async function checkedIds(
  db: Reader,
  walked: Walked,
  where: SQL,
  { limit, offset, ...stretch }: ListWindow,
): Promise<string[]> {
  const found: string[] = []
  const unchecked = { ...walked, where: undefined }
  for (
    let most = LOOKED_AT, place: Stretch = stretch;
    ;
    most = Math.min(MOST_LOOKED_AT, most * 4)
  ) {
    const ids = await foundIds(db, unchecked, { limit: most, offset: 0, ...place })
    const named = db.select({ id: subscribers.id }).from(subscribers)
    const kept = await named.where(and(inArray(subscribers.id, ids), where))
    const holds = new Set(kept.map(({ id }) => id))
    found.push(...ids.filter((id) => holds.has(id)))
    const last = ids.at(-1)
    if (last === undefined || ids.length < most || found.length >= offset + limit) break
    place = stretch.before === undefined ? { after: last } : { before: last }
    await nextTurn() // where few match, there are many looks, and other requests run between them
  }
  return found.slice(offset, offset + limit)
}

async function foundIds(db: Reader, walked: Walked, window: ListWindow): Promise<string[]> {
  const { limit, offset, ...stretch } = window
  const order = stretch.before === undefined ? desc(FOUND) : asc(FOUND)
  const found = sql`(${selected(walked, stretch, limit + offset)}) AS found`
  const ids = db.selectDistinct({ id: FOUND.mapWith(subscribers.id) }).from(found)
  return (await ids.orderBy(order).limit(limit).offset(offset)).map(({ id }) => id)
}

/** How many there are, or `most` where there are more. */
export async function countIds(db: Reader, walked: Walked, most: number): Promise<number> {
  const found = sql`(${selected(walked, {}, most)}) AS found`
  const some = sql`(SELECT DISTINCT ${FOUND} FROM ${found} LIMIT ${most}) AS some_rows`
  const [row] = await db.select({ all: sql<number>`count(*)` }).from(some)
  return Number(row?.all ?? 0)
}

const FOUND = sql<string>`found.id`

type Stretch = Pick<ListWindow, "after" | "before">

function selected({ sources, is_sorted, where }: Walked, stretch: Stretch, most: number): SQL {
  const each = sources.map((source) => {
    const { where: beyond, order } = newestFirst(source.id, stretch)
    // CROSS JOIN: SQLite takes the source first, whose order is the one that is wanted.
    const joined = where && sql` CROSS JOIN ${subscribers}`
    const wanted = and(source.where, beyond, where && and(eq(subscribers.id, source.id), where))
    const all = sql`SELECT ${source.id} AS id FROM ${source.rows}${joined} WHERE ${wanted}`
    return is_sorted ? all : sql`SELECT * FROM (${all} ORDER BY ${order} LIMIT ${most}) AS stretch`
  })
  return sql.join(each, sql` UNION ALL `)
}
