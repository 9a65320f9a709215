import { and, asc, type Column, desc, eq, gte, lte, type SQL, sql } from "drizzle-orm"
import { nextTurn } from "../core/time"
import { askedByRow } from "../store/columns"
import { countUpTo, type IdSource, type ListWindow, newestFirst } from "../store/rows"
import type { Reader } from "../store/store"
import { subscribers } from "./tables"

export interface IndexedFilter {
  /** Names all that fulfil it, each once, in the order of their ids. */
  source: IdSource
  /**
   * A condition on the row of the subscriber. The source may name subscribers that do not fulfil the filter; this
   * condition leaves them out.
   */
  row?: SQL
  /** Names exactly those that fulfil it, in another order. Without it the source does. */
  exact?: IdSource
}

/** Whether a subscriber fulfils it, asked of its row. */
export const fulfils = (db: Reader, { source, row }: IndexedFilter): SQL | undefined =>
  and(isNamedBy(db, source, subscribers.id), row)

/** The rows of a condition are looked at one by one where they are not more. */
const FEW = 2000

/** The same in any order, where a look along the order found too few. */
const MOST_CHECKED = 20_000

/** So many rows are sorted at most. */
const MOST_SORTED = 50_000

/** So many rows are sorted while the row of one subscriber is looked at. */
const SORTED_A_LOOK = 4

interface Fulfilled {
  /** Newest first. */
  ids: (window: ListWindow) => Promise<string[]>
  /** How many there are, or `most` where there are more. */
  count: (most: number) => Promise<number>
}

type IndexedFilters = readonly [IndexedFilter, ...IndexedFilter[]]

/** Finds them by whatever leads to them fastest. A count to at most `counted` and one more costs little besides the first page. */
export const fulfilled = (
  db: Reader,
  conditions: IndexedFilters,
  counted: number,
): Promise<Fulfilled> =>
  conditions.length === 1
    ? fulfilledAlone(db, conditions[0], counted)
    : fulfilledTogether(db, conditions, counted)

async function fulfilledAlone(
  db: Reader,
  condition: IndexedFilter,
  counted: number,
): Promise<Fulfilled> {
  const { source, row, exact } = condition
  if (!exact) {
    const ids = (window: ListWindow) => idsOf(db, { source, others: [] }, window)
    return { ids, count: (most) => countUpTo(db, source, most) }
  }
  const all = await countIds(db, exact, counted + 1)
  const sorted = { source: exact, others: [], is_unsorted: true }
  const ids = async (window: ListWindow) => {
    if (all <= counted) return idsOf(db, sorted, window)
    const { until } = await sparsest(db, [condition], window)
    return walkIds(db, { source, others: [], where: row }, window, until, async (looks) => {
      const most = Math.min(MOST_SORTED, looks * SORTED_A_LOOK)
      const is_shorter = (await countUpTo(db, exact, most + 1)) <= most
      return is_shorter ? idsOf(db, sorted, window) : undefined
    })
  }
  return { ids, count: async (most) => Math.min(most, all) }
}

async function fulfilledTogether(
  db: Reader,
  conditions: IndexedFilters,
  counted: number,
): Promise<Fulfilled> {
  const few = await fewest(db, conditions, FEW)
  const find = (window: ListWindow) =>
    few ? idsOf(db, few, window) : alongSparsest(db, conditions, window)
  const newest = (limit: number) => find({ limit, offset: 0, after: undefined, before: undefined })
  let first: string[] | undefined
  return {
    ids: async (window) => {
      const { limit, offset, after, before } = window
      if (after !== undefined || before !== undefined) return find(window)
      first = await newest(Math.max(offset + limit, counted + 1))
      return first.slice(offset, offset + limit)
    },
    count: async (most) => Math.min(most, (first ?? (await newest(most))).length),
  }
}

/** Of the exact sources the shortest, whose rows are asked the other conditions; undefined where it has over `most`. */
async function fewest(
  db: Reader,
  conditions: IndexedFilters,
  most: number,
): Promise<Sought | undefined> {
  let [least, found]: [number, IndexedFilter | undefined] = [most, undefined]
  for (const one of conditions) {
    const size = one.exact ? await countUpTo(db, one.exact, least + 1) : Number.POSITIVE_INFINITY
    if (size <= least) [least, found] = [size, one]
  }
  if (!found?.exact) return undefined
  const others = conditions.filter((other) => other !== found)
  return { source: found.exact, is_unsorted: true, ...asked(others) }
}

/** Where all have many rows: along the source whose rows are farthest apart. */
async function alongSparsest(
  db: Reader,
  conditions: IndexedFilters,
  window: ListWindow,
): Promise<string[]> {
  const { along, until } = await sparsest(db, conditions, window)
  const { others, where } = asked(conditions.filter((other) => other !== along))
  const sought = { source: along.source, others, where: and(along.exact && along.row, where) }
  return walkIds(db, sought, window, until, async (looks) => {
    if (looks <= FEW) return undefined
    const few = await fewest(db, conditions, Math.min(MOST_CHECKED, looks))
    return few && idsOf(db, few, window)
  })
}

/** How the conditions are asked of what another one led to. */
const asked = (conditions: IndexedFilter[]): Pick<Sought, "others" | "where"> => ({
  others: conditions.map(({ source }) => source).filter(({ rows }) => rows !== subscribers),
  where: and(...conditions.map(({ row }) => row)),
})

/** Whether the source names the subscriber with this id. */
const isNamedBy = (db: Reader, { rows, id, where }: IdSource, named: Column | SQL): SQL =>
  sql`EXISTS (SELECT 1 FROM ${rows} WHERE ${and(where, eq(id, named))}${askedByRow(db)})`

/** So many rows of a source may name a subscriber that an earlier one names, before all rows have to be read. */
const REPEATED = 100

/** How many subscribers the source names, or `most` where there are more. */
async function countIds(db: Reader, { rows, id, where }: IdSource, most: number) {
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

/** The id of the row at this place of a range; undefined if the range has fewer rows. */
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

interface Sought {
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
async function sparsest<Held extends { source: IdSource }>(
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
async function walkIds(
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
