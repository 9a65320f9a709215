import { and, eq, type SQL } from "drizzle-orm"
import { total } from "../store/counters"
import { type RowList, rowList } from "../store/rows"
import type { Reader } from "../store/store"
import { byIds, noSubscriber, ofProject, type SubscriberRow } from "./find-subscriber"
import { countIds, countUpTo, type IdSource, isNamedBy, walkIds } from "./id-walk"
import { entriesLike, hasWord, isShort, streamsOf } from "./search"
import { counterOf } from "./subscribers"
import { type SubscriberStatus, subscribers, subscriberTags } from "./tables"

/** The members of a topic, in the order of their ids, and their number. */
export interface FollowerSource extends IdSource {
  total: number
}

export interface SubscriberFilter {
  /** Words, as `readSearch` gives them. */
  words?: string[]
  /** In comparable form. */
  email?: string | undefined
  phone?: string | undefined
  external_id?: string | undefined
  status?: SubscriberStatus | undefined
  tag?: string | undefined
  topic?: FollowerSource | undefined
}

/** Of more matches of a filter without a counter the number is not told. */
const MOST_COUNTED = 1000

/** The same of filters that are combined, where each match costs a look at another table. */
const MOST_CHECKED = 100

/** So many ids are read and sorted at no cost. */
const FEW = 1000

/** So far the matches of a word are counted, to find the filter that leads to the fewest. */
const MOST_WEIGHED = 5000

/** Newest first, along an index that has this order, so that a long list is as fast as a short one. */
export async function list(
  db: Reader,
  project_id: string,
  filter: SubscriberFilter,
): Promise<RowList<SubscriberRow>> {
  const conditions = conditionsOf(db, project_id, filter)
  const driver = isPinned(filter) ? undefined : await driverOf(db, project_id, conditions, filter)
  const others = conditions.filter((one) => one !== driver).map(({ holds }) => holds)
  const where = and(ofColumns(filter), ...others)
  const of = ofProject(project_id)
  const rows = rowList(db, subscribers, { of, filter: where, missing: noSubscriber })
  const counted = counterFor(db, project_id, filter)
  if (!driver) {
    const all = { rows: subscribers, id: subscribers.id, where: and(of, where) }
    const most = conditions.length > 0 ? MOST_CHECKED : MOST_COUNTED
    const count = () => told(most, (limit) => countUpTo(db, all, limit))
    return { ...rows, total: counted ?? count }
  }
  const walked = { ...(await walkOf(db, project_id, driver)), where }
  const most = where ? MOST_CHECKED : MOST_COUNTED
  const count = () => told(most, (limit) => countIds(db, walked, limit))
  return {
    find: rows.find,
    list: async (window) => inOrder(db, project_id, await walkIds(db, walked, window)),
    total: counted ?? count,
  }
}

/** Null: there are more than are counted. */
async function told(most: number, countTo: (limit: number) => Promise<number>) {
  const all = await countTo(most + 1)
  return all > most ? null : all
}

/** A filter that another table's index answers. */
interface Condition {
  source: IdSource
  /** The same, asked of one subscriber. */
  holds: SQL
  /** How many the source names; of many, not how many exactly. */
  size: () => Promise<number>
  /** The source is in the order of words, and not of ids. */
  long_word?: string
}

function conditionsOf(
  db: Reader,
  project_id: string,
  { words = [], topic, tag }: SubscriberFilter,
): Condition[] {
  const searched = words.map((word) => {
    const source = entriesLike(project_id, word)
    const size = () => countUpTo(db, source, MOST_WEIGHED)
    return { source, holds: hasWord(word), size, ...(!isShort(word) && { long_word: word }) }
  })
  const named: Condition[] = []
  if (topic) {
    const size = async () => topic.total
    named.push({ source: topic, holds: isNamedBy(db, topic), size })
  }
  if (tag !== undefined) {
    const source = tagged(project_id, tag)
    const size = () => total(db, project_id, counterOf("tag", tag))
    named.push({ source, holds: isNamedBy(db, source), size })
  }
  return [...searched, ...named]
}

const tagged = (project_id: string, tag: string): IdSource => ({
  rows: subscriberTags,
  id: subscriberTags.subscriber_id,
  where: and(eq(subscriberTags.project_id, project_id), eq(subscriberTags.tag, tag)),
})

/** Few subscribers have the same address, and one an external id: the others are asked of them. */
const isPinned = ({ email, phone, external_id }: SubscriberFilter): boolean =>
  (email ?? phone ?? external_id) !== undefined

/**
 * The condition that leads to the fewest; of those with many, the first. Undefined where the status leads to
 * fewer: its index is one of the subscribers themselves.
 */
async function driverOf(
  db: Reader,
  project_id: string,
  conditions: Condition[],
  { status }: SubscriberFilter,
): Promise<Condition | undefined> {
  const [first, ...more] = conditions
  if (first === undefined || (more.length === 0 && status === undefined)) return first
  const sizes = await Promise.all(conditions.map(({ size }) => size()))
  const least = Math.min(...sizes)
  const driver = conditions[sizes.indexOf(least)]
  if (status === undefined) return driver
  return (await total(db, project_id, counterOf("status", status))) < least ? undefined : driver
}

async function walkOf(db: Reader, project_id: string, { source, long_word }: Condition) {
  if (long_word === undefined) return { sources: [source], is_sorted: false }
  const is_long = (await countUpTo(db, source, FEW + 1)) > FEW
  const streams = is_long ? await streamsOf(db, project_id, long_word) : undefined
  return { sources: streams ?? [source], is_sorted: streams === undefined }
}

function ofColumns({ email, phone, external_id, status }: SubscriberFilter): SQL | undefined {
  return and(
    email === undefined ? undefined : eq(subscribers.email_key, email),
    phone === undefined ? undefined : eq(subscribers.phone, phone),
    external_id === undefined ? undefined : eq(subscribers.external_id, external_id),
    status && eq(subscribers.status, status),
  )
}

/** The total where a counter knows it; of addresses the few rows are counted. */
function counterFor(db: Reader, project_id: string, filter: SubscriberFilter) {
  const { words = [], topic, ...others } = filter
  const given = Object.entries(others).filter(([, value]) => value !== undefined)
  const [only] = given
  if (words.length > 0 || given.length + (topic ? 1 : 0) > 1) return undefined
  if (topic) return async () => topic.total
  if (only && only[0] !== "status" && only[0] !== "tag") return undefined
  return () => total(db, project_id, only ? counterOf(...(only as ["tag", string])) : counterOf())
}

async function inOrder(db: Reader, project_id: string, ids: string[]): Promise<SubscriberRow[]> {
  const rows = new Map((await byIds(db, { project_id, ids })).map((row) => [row.id, row]))
  return ids.flatMap((id) => rows.get(id) ?? [])
}
