import { and, asc, desc, eq, gte, lte, max } from "drizzle-orm"
import { nextTurn } from "../core/time"
import { preparedAtOnce } from "../store/statements"
import type { Reader } from "../store/store"
import { countIn, decodeInto, MOST_NUMBER } from "./posting-block"
import { subscriberPostings } from "./tables"

// A walk goes along places. Newest first these are the negative numbers of subscribers, else the numbers, so that
// they rise on every walk.

type Places = Float64Array

interface PostingWalk {
  /** The first place at or behind this one; undefined where there is none. It never goes back. */
  seek(place: number): number | undefined
  /** How far two places are from each other, as far as the walk has seen. */
  gap(): number
}

/** Parts that one statement reads: a walk that goes on reads more of them each time. */
const PARTS = [1, 2, 8, 32] as const

/** A place that is so many times farther than the last read went is a jump. */
const JUMP = 3

/** The walk of a list in the database. */
export function listWalk(
  db: Reader,
  list: { project_id: string; term: string },
  is_back: boolean,
): PostingWalk {
  const read = is_back ? readNewer(db, list) : readOlder(db, list)
  let places: Places = new Float64Array(0)
  let [at, level, is_over] = [0, 0, false]
  const readFrom = (place: number) => {
    const end = places.at(-1) ?? place
    const span = end - (places[0] ?? end)
    if (places.length > 0)
      level = place - end > JUMP * span ? 0 : Math.min(level + 1, PARTS.length - 1)
    const part = read(place, level)
    ;({ places, is_over } = part)
    at = 0
  }
  return {
    seek(place) {
      while ((places.at(-1) ?? Number.NEGATIVE_INFINITY) < place) {
        if (is_over) return undefined
        readFrom(place)
      }
      at = firstFrom(places, at, place)
      return places[at]
    },
    gap: () => gapOf(places, is_over),
  }
}

/** The walk of a list that is in memory, whose places rise. */
export function heldWalk(places: Places): PostingWalk {
  let at = 0
  return {
    seek(place) {
      at = firstFrom(places, at, place)
      return places[at]
    },
    gap: () => gapOf(places, true),
  }
}

const gapOf = (places: Places, is_all: boolean): number =>
  is_all
    ? MOST_NUMBER / (places.length + 1)
    : ((places.at(-1) ?? 0) - (places[0] ?? 0)) / Math.max(places.length, 1)

/** The index of the first value that is not smaller, from an index on: near ones are found fastest. */
function firstFrom(values: Places, from: number, least: number): number {
  let [low, step] = [from, 1]
  while (low + step < values.length && (values[low + step] ?? 0) < least) {
    low += step
    step *= 2
  }
  let high = Math.min(low + step, values.length)
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((values[middle] ?? 0) < least) low = middle + 1
    else high = middle
  }
  return low
}

/** Where a walk lets other requests run. */
const TURN_LOOKS = 200

/** What all of the walks have, from a place on; each call goes on behind the one before. At least one walk. */
function commonPlaces(walks: PostingWalk[], from: number) {
  let [place, is_over] = [from, walks.some((walk) => walk.seek(from) === undefined)]
  walks.sort((one, other) => other.gap() - one.gap())

  /** The next common place at or behind `place`; "farther" where it was moved instead. */
  const look = (): number | "farther" | undefined => {
    let common = place
    for (const [at, walk] of walks.entries()) {
      const here = walk.seek(common)
      if (here === undefined) return undefined
      if (here > common && at > 0) {
        place = here
        return "farther"
      }
      common = here
    }
    place = common + 1
    return common
  }

  return async (most: number): Promise<number[]> => {
    const found: number[] = []
    for (let looks = 1; found.length < most && !is_over; looks++) {
      const common = look()
      if (common === undefined) is_over = true
      else if (common !== "farther") found.push(common)
      if (looks % TURN_LOOKS === 0) await nextTurn()
    }
    return found
  }
}

/** So many times as frequent as the rarest list: nearly each place of that one would need a part of its own. */
const DENSE = 300

/** Subscribers that are asked at once. Others may have to wait as long as that takes. */
const MOST_ASKED = 500

/**
 * As `commonPlaces`, but places of rare lists are found first, and the subscribers themselves are asked for the rest: `ask`
 * leaves out those that another list does not have. Where these are many, all of the lists are walked.
 */
export function sparseFirst(
  walksOf: () => PostingWalk[],
  from: number,
  ask: (places: number[]) => Promise<number[]>,
) {
  const walks = walksOf()
  for (const walk of walks) walk.seek(from)
  const widest = Math.max(...walks.map((walk) => walk.gap()))
  const sparse = walks.filter((walk) => walk.gap() * DENSE >= widest)
  if (sparse.length === walks.length) return commonPlaces(walks, from)
  let [next, is_asked] = [commonPlaces(sparse, from), true]
  return async (most: number): Promise<number[]> => {
    const found: number[] = []
    while (found.length < most) {
      const left = most - found.length
      const some = await next(is_asked ? Math.min(left, MOST_ASKED) : left)
      if (some.length === 0) break
      const common = is_asked ? await ask(some) : some
      found.push(...common)
      if (is_asked && found.length < most) await nextTurn()
      if (common.length * 2 >= some.length) continue
      next = commonPlaces(walksOf(), (some.at(-1) ?? 0) + 1)
      is_asked = false
    }
    return found
  }
}

/** Numbers that one read found, as places; whether there are no more. */
interface PlacesRead {
  places: Places
  is_over: boolean
}

type ReadPlaces = (place: number, level: number) => PlacesRead

function readOlder(db: Reader, list: { project_id: string; term: string }): ReadPlaces {
  let newest = MOST_NUMBER
  return (place, level) => {
    newest = Math.min(newest, -place)
    const parts = olderParts[level]?.(db, { ...list, first: newest }) ?? []
    const numbers = numbersOf(parts.reverse())
    let end = numbers.length
    while (end > 0 && (numbers[end - 1] ?? 0) > newest) end--
    const places = numbers.subarray(0, end).reverse()
    for (let at = 0; at < places.length; at++) places[at] = -(places[at] ?? 0)
    newest = Math.min(newest, (parts[0]?.first ?? 0) - 1)
    return { places, is_over: newest < 0 || parts.length < (PARTS[level] ?? 1) }
  }
}

function readNewer(db: Reader, list: { project_id: string; term: string }): ReadPlaces {
  let unread = 0 // where the next part may begin
  return (place, level) => {
    const [before] = partBefore(db, { ...list, first: Math.max(place, 0) })
    const begin = Math.max(before?.first ?? 0, unread)
    const parts = newerParts[level]?.(db, { ...list, first: begin }) ?? []
    const places = numbersOf(parts).filter((number) => number >= place)
    unread = (parts.at(-1)?.first ?? 0) + 1
    return { places, is_over: parts.length < (PARTS[level] ?? 1) }
  }
}

/** The numbers of parts that rise. */
function numbersOf(parts: { numbers: Uint8Array }[]): Float64Array {
  const all = new Float64Array(parts.reduce((sum, part) => sum + countIn(part.numbers), 0))
  let next = 0
  for (const part of parts) {
    decodeInto(part.numbers, all, next)
    next += countIn(part.numbers)
  }
  return all
}

const { project_id, term, first, numbers } = subscriberPostings
const HOLES = { project_id, term, first }

const olderParts = PARTS.map((most) =>
  preparedAtOnce(HOLES, (db: Reader, slot) =>
    db
      .select({ first, numbers })
      .from(subscriberPostings)
      .where(and(eq(project_id, slot.project_id), eq(term, slot.term), lte(first, slot.first)))
      .orderBy(desc(first))
      .limit(most),
  ),
)

const newerParts = PARTS.map((most) =>
  preparedAtOnce(HOLES, (db: Reader, slot) =>
    db
      .select({ first, numbers })
      .from(subscriberPostings)
      .where(and(eq(project_id, slot.project_id), eq(term, slot.term), gte(first, slot.first)))
      .orderBy(asc(first))
      .limit(most),
  ),
)

const partBefore = preparedAtOnce(HOLES, (db: Reader, slot) =>
  db
    .select({ first: max(first) })
    .from(subscriberPostings)
    .where(and(eq(project_id, slot.project_id), eq(term, slot.term), lte(first, slot.first))),
)
