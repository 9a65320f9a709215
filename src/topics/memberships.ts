import { and, asc, desc, eq, gt, inArray, lt, lte, type SQL, sql } from "drizzle-orm"
import { fail } from "../core/errors"
import { now } from "../core/time"
import type { Page } from "../http/page"
import { forShare, forUpdate } from "../store/columns"
import { byMoment, cursorText } from "../store/moment-cursor"
import { countAlong, type ListWindow } from "../store/rows"
import { inserter } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { lookupAll } from "../subscribers/find-subscriber"
import { subscribers } from "../subscribers/tables"
import { type TopicRow, topicMembers, topics } from "./tables"

/** Rows of one transaction: others work in between. */
const REMOVED_AT_ONCE = 2000

const isMember = (topic_id: string, subscriber_ids: string[]): SQL | undefined =>
  and(inArray(topicMembers.subscriber_id, subscriber_ids), eq(topicMembers.topic_id, topic_id))

/**
 * Adds subscribers to a topic, by ids or external ids. The order of locks is everywhere the same:
 * subscribers first, then topics in the order of their ids.
 */
export async function join(
  tx: Tx,
  topic: Pick<TopicRow, "id" | "project_id">,
  names: readonly string[],
): Promise<{ added: number; already: number; not_found: string[] }> {
  const { id: topic_id, project_id } = topic
  const found = await lookupAll(tx, project_id, names, forShare)
  const ids = [...new Set([...found.values()].map(({ id }) => id))]
  const row = await topicForUpdate(tx, topic_id)
  const known = await tx
    .select({ id: topicMembers.subscriber_id })
    .from(topicMembers)
    .where(isMember(topic_id, ids))
  const members = new Set(known.map(({ id }) => id))
  const fresh = ids.filter((id) => !members.has(id))
  const created_at = now()
  await insertMembers(
    tx,
    fresh.map((subscriber_id, at) => {
      return { topic_id, number: row.last_number + at + 1, project_id, subscriber_id, created_at }
    }),
  )
  await countMembers(tx, topic_id, fresh.length)
  const not_found = missingIn(names, found)
  return { added: fresh.length, already: members.size, not_found }
}

const insertMembers = inserter(topicMembers)

const missingIn = (names: readonly string[], found: Map<string, unknown>): string[] => [
  ...new Set(names.filter((name) => !found.has(name))),
]

async function topicForUpdate(tx: Tx, id: string): Promise<TopicRow> {
  const [row] = await forUpdate(tx.select().from(topics).where(eq(topics.id, id)))
  return row ?? fail("topic_not_found", "The topic was deleted.")
}

/** Numbers are given once: the number of a member that leaves stays free. */
async function countMembers(tx: Tx, topic_id: string, by: number): Promise<void> {
  if (by === 0) return
  const { subscriber_count, last_number } = topics
  const numbered = by > 0 && { last_number: sql`${last_number} + ${by}` }
  await tx
    .update(topics)
    .set({ subscriber_count: sql`${subscriber_count} + ${by}`, ...numbered })
    .where(eq(topics.id, topic_id))
}

/** Removes subscribers from a topic, by ids or external ids. */
export async function leave(
  tx: Tx,
  topic: Pick<TopicRow, "id" | "project_id">,
  names: readonly string[],
): Promise<{ removed: number; not_found: string[] }> {
  const found = await lookupAll(tx, topic.project_id, names)
  await topicForUpdate(tx, topic.id)
  const ids = [...found.values()].map(({ id }) => id)
  const gone = await tx
    .delete(topicMembers)
    .where(isMember(topic.id, ids))
    .returning({ id: topicMembers.subscriber_id })
  await countMembers(tx, topic.id, -gone.length)
  const left = new Set(gone.map(({ id }) => id))
  const members = new Map([...found].filter(([, { id }]) => left.has(id)))
  return { removed: left.size, not_found: missingIn(names, members) }
}

/** Removes one member, and returns its id. Throws 404 `subscriber_not_found`. */
export async function leaveOne(tx: Tx, topic: TopicRow, name: string): Promise<string> {
  const found = await lookupAll(tx, topic.project_id, [name])
  const { removed } = await leave(tx, topic, [name])
  const id = found.get(name)?.id
  if (removed > 0 && id !== undefined) return id
  const message = `The topic ${topic.key} has no such member. Give an id or an external id.`
  return fail("subscriber_not_found", message)
}

/** Removes subscribers from every topic: what their deletion does. */
export async function leaveAll(tx: Tx, subscriber_ids: string[]): Promise<number> {
  if (subscriber_ids.length === 0) return 0
  const theirs = inArray(topicMembers.subscriber_id, subscriber_ids)
  await lockTopicsOf(tx, theirs)
  const gone = await tx
    .delete(topicMembers)
    .where(theirs)
    .returning({ topic_id: topicMembers.topic_id })
  for (const [topic_id, list] of Map.groupBy(gone, (row) => row.topic_id)) {
    await countMembers(tx, topic_id, -list.length)
  }
  return gone.length
}

async function lockTopicsOf(tx: Tx, among: SQL): Promise<void> {
  const named = await tx
    .selectDistinct({ id: topicMembers.topic_id })
    .from(topicMembers)
    .where(among)
  const ids = named.map(({ id }) => id)
  if (ids.length === 0) return
  await forUpdate(
    tx.select({ id: topics.id }).from(topics).where(inArray(topics.id, ids)).orderBy(topics.id),
  )
}

/** The place of a member in a topic. */
export interface MemberPlace {
  topic_id: string
  number: number
  created_at: string
}

/** Which of two places in one topic a subscriber needs that takes over another one: that of the other, or its own. */
type NeedsPlace = (other: MemberPlace, own: MemberPlace) => Promise<boolean>

/** Gives the memberships of one subscriber to another, which keeps its own where it does not need the other. */
export async function moveAll(
  tx: Tx,
  from_id: string,
  into_id: string,
  needsPlace: NeedsPlace,
): Promise<number> {
  const { topic_id, subscriber_id, number, created_at } = topicMembers
  await lockTopicsOf(tx, inArray(subscriber_id, [from_id, into_id]))
  const rows = await tx
    .select({ topic_id, subscriber_id, number, created_at })
    .from(topicMembers)
    .where(inArray(subscriber_id, [from_id, into_id]))
  const isOf = (id: string) => (row: { subscriber_id: string }) => row.subscriber_id === id
  const own = new Map(rows.filter(isOf(into_id)).map((row) => [row.topic_id, row]))
  let moved = 0
  for (const row of rows.filter(isOf(from_id))) {
    const known = own.get(row.topic_id)
    if (known && !(await needsPlace(row, known))) continue
    if (known) {
      await tx.delete(topicMembers).where(isMember(row.topic_id, [into_id]))
      await countMembers(tx, row.topic_id, -1)
    } else moved += 1
    await tx
      .update(topicMembers)
      .set({ subscriber_id: into_id })
      .where(isMember(row.topic_id, [from_id]))
  }
  await leaveAll(tx, [from_id])
  return moved
}

/** Newest first. A member's id in a page is its number. */
export async function listMembers(
  db: Reader,
  topic: TopicRow,
  { after, before, limit, offset }: ListWindow,
): Promise<Page<{ id: string } & MemberRecord>> {
  const { number, topic_id, subscriber_id, created_at } = topicMembers
  const [beyond, order] =
    before === undefined
      ? [after === undefined ? undefined : lt(number, Number(after)), desc(number)]
      : [gt(number, Number(before)), asc(number)]
  const { external_id, email } = subscribers
  const rows = await db
    .select({ number, subscriber_id, external_id, email, subscribed_at: created_at })
    .from(topicMembers)
    .innerJoin(subscribers, eq(subscribers.id, subscriber_id))
    .where(and(eq(topic_id, topic.id), beyond))
    .orderBy(order)
    .limit(limit)
    .offset(offset)
  return {
    rows: rows.map(({ number: own, ...member }) => ({ id: String(own), ...member })),
    total: async () => topic.subscriber_count,
  }
}

interface MemberRecord {
  subscriber_id: string
  external_id: string
  email: string | null
  subscribed_at: string
}

/** The place of a member in the list of members. Throws 404 `subscriber_not_found`. */
export async function numberOf(db: Reader, topic: TopicRow, name: string): Promise<string> {
  const found = await lookupAll(db, topic.project_id, [name])
  const ids = [...found.values()].map(({ id }) => id)
  const rows = db.select().from(topicMembers).where(isMember(topic.id, ids))
  const [row] = await rows
  return row ? String(row.number) : fail("subscriber_not_found", "There is no such member.")
}

/** The topics that a subscriber is a member of, the latest first. */
export async function topicsOf(
  db: Reader,
  id: string,
  window: ListWindow,
): Promise<Page<{ id: string; key: string; name: string; subscribed_at: string }>> {
  const { topic_id, subscriber_id, created_at } = topicMembers
  const { where, order } = byMoment(created_at, topic_id, window)
  const rows = await db
    .select({ topic_id, key: topics.key, name: topics.name, subscribed_at: created_at })
    .from(topicMembers)
    .innerJoin(topics, eq(topics.id, topic_id))
    .where(and(eq(subscriber_id, id), where))
    .orderBy(...order)
    .limit(window.limit)
    .offset(window.offset)
  return {
    rows: rows.map((row) => ({
      id: cursorText({ at: row.subscribed_at, id: row.topic_id }),
      ...row,
    })),
    total: () => countAlong(db, { rows: topicMembers, id: topic_id, where: eq(subscriber_id, id) }),
  }
}

/** The place of a topic in that list. Throws 404 `topic_not_found`. */
export async function momentOf(db: Reader, subscriber: string, topic_id: string): Promise<string> {
  const [row] = await db
    .select()
    .from(topicMembers)
    .where(isMember(topic_id, [subscriber]))
  if (!row) return fail("topic_not_found", "The subscriber is no member of this topic.")
  return cursorText({ at: row.created_at, id: topic_id })
}

/** Of a topic that was deleted. Returns how many went. */
export async function removeSome(tx: Tx, topic_id: string): Promise<number> {
  const ours = eq(topicMembers.topic_id, topic_id)
  const { number } = topicMembers
  const some = await tx
    .select({ number })
    .from(topicMembers)
    .where(ours)
    .orderBy(asc(number))
    .limit(REMOVED_AT_ONCE)
  const last = some.at(-1)?.number
  if (last === undefined) return 0
  await tx.delete(topicMembers).where(and(ours, lte(number, last)))
  return some.length
}
