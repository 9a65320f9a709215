import { and, type SQL } from "drizzle-orm"
import { countUpTo, type IdSource, type ListWindow } from "../store/rows"
import type { Reader } from "../store/store"
import { countIds, idsOf, isNamedBy, type Sought, sparsest, walkIds } from "./id-walk"
import { subscribers } from "./tables"

/** A filter that an index answers. */
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

/** The subscribers that fulfil all of some conditions. */
interface Fulfilled {
  /** Newest first. */
  ids: (window: ListWindow) => Promise<string[]>
  /** How many there are, or `most` where there are more. */
  count: (most: number) => Promise<number>
}

/** At least one. */
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
