import { and, eq, gte, lt, type SQL, sql } from "drizzle-orm"
import { json, table } from "../store/columns"
import type { ListWindow } from "../store/rows"
import { prepared, preparedAtOnce } from "../store/statements"
import type { Reader } from "../store/store"
import type { SubscriberRow } from "./find-subscriber"
import { idsWith, MOST_NUMBER, numberOf } from "./posting-block"
import { heldWalk, listWalk, sparseFirst } from "./posting-walk"
import { firstLetters, MOST_LISTED, tagTerm } from "./search-words"
import { subscribers, subscriberWords } from "./tables"

interface PostingFilter {
  /** At least one. None is shorter than the shortest beginning with a list (`LEAST_LISTED`). */
  words: string[]
  tag?: string | undefined
}

interface PostingMatches {
  /** Newest first; of those before a subscriber the nearest first. */
  list: (window: ListWindow) => Promise<SubscriberRow[]>
  /** How many there are, or `most` where there are more. */
  count: (most: number) => Promise<number>
}

/** Entries of words that begin with a searched one of more than six letters: with more another way is faster. */
const MOST_ENTRIES = 2000

/**
 * Finds subscribers by the posting lists, which must be complete. A count to at most `counted` and one more costs
 * little besides the first page. Undefined where many have a word that begins like a long one: those are no list.
 * Two that several nodes made in the same millisecond may count as one (see `numberOf`).
 */
export function postingMatches(
  db: Reader,
  of: string,
  filter: PostingFilter,
  counted: number,
): PostingMatches | undefined {
  const terms = filter.words.filter((word) => firstLetters(word, MOST_LISTED) === word)
  if (filter.tag !== undefined) terms.push(tagTerm(filter.tag))
  const long = filter.words.filter((word) => firstLetters(word, MOST_LISTED) !== word)
  const held = long.map((word) => numbersWith(db, of, word))
  if (held.includes(undefined)) return undefined
  const walksOf = (is_back: boolean) => [
    ...terms.map((term) => listWalk(db, { project_id: of, term }, is_back)),
    ...held.map((numbers = NONE) => heldWalk(is_back ? numbers : turned(numbers))),
  ]
  const fits = fitting(filter)
  const ask = async (places: number[]) => {
    const rows = (await factsWith(db, { project_id: of, ranges: rangesOf(places) })).filter(fits)
    const numbers = new Set(rows.map(({ id }) => numberOf(id)))
    return places.filter((place) => numbers.has(Math.abs(place)))
  }
  const open = (from: number, is_back: boolean) => sparseFirst(() => walksOf(is_back), from, ask)
  const newest = collected(() => open(-MOST_NUMBER, false))
  const rowsAt = async (places: number[], is_back: boolean) => {
    const rows = (await rowsWith(db, { project_id: of, ranges: rangesOf(places) })).filter(fits)
    return rows.sort((one, other) => (one.id < other.id === is_back ? -1 : 1))
  }

  return {
    count: async (most) => Math.min(most, (await newest(most)).length),
    async list({ limit, offset, after, before }) {
      const edge = before ?? after
      const is_back = before !== undefined
      const from = edge === undefined ? 0 : numberOf(edge)
      const all =
        edge === undefined ? newest : collected(() => open(is_back ? from : -from, is_back))
      const rows: SubscriberRow[] = []
      for (let at = offset; rows.length < limit; ) {
        const wanted = at + limit - rows.length + (edge === undefined ? 0 : 1)
        const places = (await all(Math.max(wanted, edge === undefined ? counted + 1 : 0))).slice(
          at,
          wanted,
        )
        if (places.length === 0) break
        at += places.length
        const some = await rowsAt(places, is_back)
        rows.push(...some.filter((row) => isBeyond(row, { after, before })))
      }
      return rows.slice(0, limit)
    },
  }
}

const isBeyond = ({ id }: SubscriberRow, { after, before }: Partial<ListWindow>): boolean =>
  before !== undefined ? id > before : after === undefined || id < after

/** The row is asked again: a number may stand for two subscribers, and rows change between two reads. */
const fitting =
  ({ words, tag }: PostingFilter) =>
  ({ search_key, tags }: Pick<SubscriberRow, "search_key" | "tags">): boolean =>
    words.every((word) => search_key.includes(` ${word}`)) &&
    (tag === undefined || tags.includes(tag))

const rangesOf = (places: number[]) => places.map((place) => idsWith(Math.abs(place)))

/** Newest first, as places are. */
const turned = (numbers: Float64Array): Float64Array => numbers.map((number) => -number).reverse()

const NONE = new Float64Array(0)

/** Keeps what a walk found. The first so many, where there are so many; begun at the first call. */
function collected(begin: () => (most: number) => Promise<number[]>) {
  const found: number[] = []
  let next: ((most: number) => Promise<number[]>) | undefined
  let last: Promise<unknown> = Promise.resolve()
  const collect = async (most: number) => {
    next ??= begin()
    if (found.length < most) found.push(...(await next(most - found.length)))
    return found
  }
  return (most: number): Promise<number[]> => {
    const mine = last.then(() => collect(most))
    last = mine.catch(() => {})
    return mine
  }
}

/** The numbers of all that have a word which begins like this, rising; undefined where they are many. */
function numbersWith(db: Reader, of: string, word: string): Float64Array | undefined {
  const entries = entriesFrom(db, { project_id: of, word, end: word + HIGHEST })
  if (entries.length > MOST_ENTRIES) return undefined
  return Float64Array.from(entries, (entry) => numberOf(entry.subscriber_id)).sort()
}

/** No word goes on with this character, which sorts behind all others. */
const HIGHEST = "\u{10ffff}"

const { project_id, word, subscriber_id } = subscriberWords

const entriesFrom = preparedAtOnce({ project_id, word, end: word }, (db: Reader, slot) =>
  db
    .select({ subscriber_id })
    .from(subscriberWords)
    .where(and(eq(project_id, slot.project_id), gte(word, slot.word), lt(word, slot.end)))
    .limit(MOST_ENTRIES + 1),
)

const ranges = table("-", { list: json<{ low: string; high: string }[]>().notNull() }).list

/** The ids of subscribers that have one of some numbers. */
function idsIn(list: SQL): SQL {
  const end = (name: string) => sql.raw(`unhex(value ->> '${name}', '-')`)
  return sql`${subscribers.id} IN (SELECT one.id FROM json_each(${list}) JOIN ${subscribers} AS one
    ON one.id BETWEEN ${end("low")} AND ${end("high")})`
}

const HOLES = { project_id: subscribers.project_id, ranges }

/** In any order. */
const rowsWith = prepared(HOLES, (db: Reader, slot) =>
  db
    .select()
    .from(subscribers)
    .where(and(eq(subscribers.project_id, slot.project_id), idsIn(slot.ranges))),
)

/** As `rowsWith`, with no more than `fitting` asks. */
const factsWith = prepared(HOLES, (db: Reader, slot) =>
  db
    .select({ id: subscribers.id, search_key: subscribers.search_key, tags: subscribers.tags })
    .from(subscribers)
    .where(and(eq(subscribers.project_id, slot.project_id), idsIn(slot.ranges))),
)
