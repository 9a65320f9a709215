import { and, eq, type SQL } from "drizzle-orm"
import { total } from "../store/counters"
import { type IdSource, type RowList, rowList } from "../store/rows"
import type { Reader } from "../store/store"
import { fulfilled, fulfils, type IndexedFilter } from "./conditions"
import { byIds, noSubscriber, ofProject, type SubscriberRow } from "./find-subscriber"
import { areComplete } from "./postings"
import { firstLetters, LEAST_LISTED, wordFilter } from "./search-words"
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
const MOST_COMBINED = 100

/** Newest first, along an index that has this order, so that a long list is as fast as a short one. */
export async function list(
  db: Reader,
  project_id: string,
  filter: SubscriberFilter,
): Promise<RowList<SubscriberRow>> {
  const named = conditionsOf(project_id, filter)
  const of = ofProject(project_id)
  const counted = counterFor(db, project_id, filter)
  const most = named.length > 1 || filter.status !== undefined ? MOST_COMBINED : MOST_COUNTED
  const [first, ...more] = named
  const posted = await byPostings(db, project_id, filter, most)
  if (posted) {
    const { find } = rowList(db, subscribers, { of, missing: noSubscriber })
    return {
      find,
      list: async (window) => ({ rows: await posted.list(window) }),
      total: () => told(most, posted.count),
    }
  }
  if (isPinned(filter) || !first) {
    const [indexed, ...others] = [...columnsOf(filter), ...named.map((one) => fulfils(db, one))]
    const asked = { owner: project_id, of, indexed, filter: and(...others) }
    const rows = rowList(db, subscribers, { ...asked, missing: noSubscriber })
    return counted ? { ...rows, total: counted } : rows
  }
  const status = filter.status === undefined ? [] : [ofStatus(project_id, filter.status)]
  const { ids, count } = await fulfilled(db, [first, ...more, ...status], most)
  return {
    find: rowList(db, subscribers, { of, missing: noSubscriber }).find,
    list: async (window) => ({ rows: await inOrder(db, project_id, await ids(window)) }),
    total: counted ?? (() => told(most, count)),
  }
}

/** Words, alone or with a tag, where posting lists lead to them. */
async function byPostings(
  db: Reader,
  project_id: string,
  filter: SubscriberFilter,
  counted: number,
) {
  const { words = [], tag, topic, status } = filter
  if (words.length === 0 || topic || status !== undefined || isPinned(filter)) return undefined
  if (!words.every(hasList)) return undefined
  if (!(await areComplete(db))) return undefined
  const { postingMatches } = await loaded()
  return postingMatches(db, project_id, { words, tag }, counted)
}

const hasList = (word: string): boolean => firstLetters(word, LEAST_LISTED - 1).length < word.length

/** With the first search: a server that nobody asks does not need it. */
const loaded = () => (postings ??= import("./posting-search"))

let postings: Promise<typeof import("./posting-search")> | undefined

/** Null: there are more than are counted. */
async function told(most: number, countTo: (limit: number) => Promise<number>) {
  const all = await countTo(most + 1)
  return all > most ? null : all
}

function conditionsOf(
  project_id: string,
  { words = [], topic, tag }: SubscriberFilter,
): IndexedFilter[] {
  const conditions: IndexedFilter[] = words.map((word) => wordFilter(project_id, word))
  if (topic) conditions.push({ source: topic })
  if (tag !== undefined) conditions.push({ source: tagged(project_id, tag) })
  return conditions
}

function ofStatus(project_id: string, status: SubscriberStatus): IndexedFilter {
  const row = eq(subscribers.status, status)
  const where = and(ofProject(project_id), row)
  return { source: { rows: subscribers, id: subscribers.id, where }, row }
}

const tagged = (project_id: string, tag: string): IdSource => ({
  rows: subscriberTags,
  id: subscriberTags.subscriber_id,
  where: and(eq(subscriberTags.project_id, project_id), eq(subscriberTags.tag, tag)),
})

/** Few subscribers have the same address, and one an external id: the others are asked of them. */
const isPinned = ({ email, phone, external_id }: SubscriberFilter): boolean =>
  (email ?? phone ?? external_id) !== undefined

/** Each has an index of its own. The one that leaves the fewest comes first. */
function columnsOf({ email, phone, external_id, status }: SubscriberFilter): SQL[] {
  const conditions = [
    external_id === undefined ? undefined : eq(subscribers.external_id, external_id),
    email === undefined ? undefined : eq(subscribers.email_key, email),
    phone === undefined ? undefined : eq(subscribers.phone, phone),
    status && eq(subscribers.status, status),
  ]
  return conditions.filter((one) => one !== undefined)
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
