import { and, asc, type Column, desc, eq, gte, lte, type SQL, sql } from "drizzle-orm"
import { nextTurn } from "../core/time"
import { askedByRow } from "../store/dialect"
import { type IdSource, type ListWindow, newestFirst } from "../store/rows"
import type { Reader } from "../store/store"
import { subscribers } from "./tables"

/** Whether the source names the subscriber with this id. */
export const isNamedBy = (db: Reader, { rows, id, where }: IdSource, named: Column | SQL): SQL =>
  sql`EXISTS (SELECT 1 FROM ${rows} WHERE ${and(where, eq(id, named))}${askedByRow(db)})`

/** So many rows of a source may name a subscriber that an earlier one names, before all rows have to be read. */
const REPEATED = 100

/** How many subscribers the source names, or `most` where there are more. */
export async function countIds(db: Reader, { rows, id, where }: IdSource, most: number) {
  const limit = most + REPEATED
  // Postgres reads all rows before the first one of a DISTINCT, so their number is limited before.
  const some = sql`(SELECT ${id} AS id FROM ${rows} WHERE ${where} LIMIT ${limit}) AS some_rows`
  const counts = {
    all: sql<number>`count(*)`,
    different: sql<number>`count(DISTINCT some_rows.id)`,
  }
  const [row] = await db.select(counts).from(some)
  const different = Number(row?.different ?? 0)
  if (different >= most || Number(row?.all ?? 0) < limit) return Math.min(different, most)
  const ids = sql`(SELECT DISTINCT ${id} FROM ${rows} WHERE ${where} LIMIT ${most}) AS some_ids`
  const [whole] = await db.select({ all: sql<number>`count(*)` }).from(ids)
  return Number(whole?.all ?? 0)
}

type IdRange = Pick<ListWindow, "after" | "before">

/** The id of the row that comes so many rows into a range; undefined where that has fewer. */
async function idAt(
  db: Reader,
  source: IdSource,
  range: IdRange,
  place: number,
): Promise<string | undefined> {
  const only = { source, others: [] }
  const [id] = await idsOf(db, only, { ...range, limit: 1, offset: place - 1 })
  return id
}

/** Subscribers that a source names. */
export interface Sought {
  source: IdSource
  /** Each of these must name them, too. */
  others: IdSource[]
  /** What must be true of the row of the subscriber, which is read for it. */
  where?: SQL | undefined
  /** The source may name one twice, and its rows may be in any order. */
  is_unsorted?: boolean
}

/** The ids of one window, each once, newest first. Of an unsorted source every row is looked at. */
export async function idsOf(
  db: Reader,
  { source: { rows, id, where: named }, others, where, is_unsorted }: Sought,
  { limit, offset, ...range }: ListWindow,
  until?: string,
): Promise<string[]> {
  const is_back = range.before !== undefined
  const { where: beyond } = newestFirst(id, range)
  const end = until === undefined ? undefined : (is_back ? lte : gte)(id, until)
  const source = sql`(SELECT ${id} AS id FROM ${rows} WHERE ${and(named, beyond, end)}) AS named`
  const one = { id: NAMED.mapWith(subscribers.id) }
  const select = is_unsorted ? db.selectDistinct(one) : db.select(one)
  const row = where && { rows: subscribers, id: subscribers.id, where }
  const asked = [...others, ...(row ? [row] : [])].map((other) => isNamedBy(db, other, NAMED))
  const ordered = select
    .from(source)
    .where(and(...asked))
    .orderBy(is_back ? asc(NAMED) : desc(NAMED))
  return (await ordered.limit(limit).offset(offset)).map((found) => found.id)
}

const NAMED = sql<string>`named.id`

/** Rows of a long source that are looked at first, and then each time. Other requests run before the next ones. */
const FIRST_LOOK = 1000
const NEXT_LOOK = 4000

/** Where a walk begins: along a source, with a look to this id, or to the end. */
interface FirstLook<Held> {
  along: Held
  until: string | undefined
}

/** The source whose rows are farthest apart where a window begins, so that a walk along it is the shortest. */
export async function sparsest<Held extends { source: IdSource }>(
  db: Reader,
  [first, ...more]: readonly [Held, ...Held[]],
  { after, before }: IdRange,
): Promise<FirstLook<Held>> {
  const reach = (one: Held) => idAt(db, one.source, { after, before }, FIRST_LOOK)
  let found: FirstLook<Held> = { along: first, until: await reach(first) }
  for (const along of more) {
    if (found.until === undefined) break // it ends before
    const until = await reach(along)
    const is_farther =
      until === undefined || (before === undefined ? until < found.until : until > found.until)
    if (is_farther) found = { along, until }
  }
  return found
}

/**
 * As `idsOf`, for a source that may be long. Where the first look does not find all of the window, `instead` may answer.
 * It is told how many more looks it would probably take; undefined lets the walk go on.
 */
export async function walkIds(
  db: Reader,
  sought: Sought,
  window: ListWindow,
  first_until: string | undefined,
  instead: (missing_looks: number) => Promise<string[] | undefined>,
): Promise<string[]> {
  const { limit, offset, ...range } = window
  const wanted = limit + offset
  const found: string[] = []
  let [place, until]: [IdRange, string | undefined] = [range, first_until]
  for (let is_first = true; ; is_first = false) {
    const left = { ...place, limit: wanted - found.length, offset: 0 }
    found.push(...(await idsOf(db, sought, left, until)))
    if (until === undefined || found.length === wanted) return found.slice(offset)
    const looks = (FIRST_LOOK * (wanted - found.length)) / Math.max(found.length, 1)
    const other = is_first ? await instead(Math.floor(looks)) : undefined
    if (other) return other
    await nextTurn()
    place = place.before === undefined ? { after: until } : { before: until }
    until = await idAt(db, sought.source, place, NEXT_LOOK)
  }
}
