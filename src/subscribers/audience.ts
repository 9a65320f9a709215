import { and, eq, sql } from "drizzle-orm"
import { idList, isAmong } from "../store/columns"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import type { DecidedSubscriber } from "./decision"
import { byIds } from "./find-subscriber"
import { mergedIds } from "./merged-subscribers"
import { subscribers, unsubscribes } from "./tables"

/** A subscriber with everything that the decision asks of it. */
export type AudienceMember = typeof subscribers.$inferSelect & DecidedSubscriber

/**
 * The subscribers of the project with these ids, with what each unsubscribed from, by id. One that does not
 * exist any more is missing. Two queries for any number: at accept, at send and for a chunk of a fan-out.
 * `lock` may lock the rows, in the order of their ids.
 */
export async function audienceOf(
  db: Reader,
  project_id: string,
  ids: readonly string[],
  lock: <Query extends object>(query: Query) => Query = (query) => query,
): Promise<Map<string, AudienceMember>> {
  if (ids.length === 0) return new Map()
  const asked = { project_id, ids: [...new Set(ids)] }
  const rows = await (db.isAlone ? byIds(db, asked) : lock(inOrder(db, asked)))
  const ended = await unsubscribesOf(db, asked)
  const endedOf = Map.groupBy(ended, ({ subscriber_id }) => subscriber_id)
  const members = new Map<string, AudienceMember>()
  for (const row of rows) {
    members.set(row.id, Object.assign(row, { unsubscribes: endedOf.get(row.id) ?? [] }))
  }
  return members
}

/** Another merge may follow between two looks. */
const MOST_LOOKS = 3

/**
 * As `audienceOf`; the id of a subscriber that was merged into another one leads to the one that was kept. A
 * job may yet have to give it the messages.
 */
export async function heirsIncluded(
  db: Reader,
  project_id: string,
  ids: readonly string[],
  lock?: <Query extends object>(query: Query) => Query,
): Promise<Map<string, AudienceMember>> {
  const members = await audienceOf(db, project_id, ids, lock)
  for (let looks = 0; looks < MOST_LOOKS; looks++) {
    const missing = ids.filter((id) => !members.has(id))
    const heirs = missing.length > 0 ? await mergedIds(db, { project_id, ids: missing }) : []
    if (heirs.length === 0) break
    const theirs = heirs.map(({ subscriber_id }) => subscriber_id)
    const kept = await audienceOf(db, project_id, theirs, lock)
    for (const { id, subscriber_id } of heirs) {
      const heir = kept.get(subscriber_id)
      if (heir) members.set(id, heir)
    }
  }
  return members
}

// Only Postgres has rows to lock, so only there the builder has to make the query.
const inOrder = (db: Reader, { project_id, ids }: { project_id: string; ids: string[] }) =>
  db
    .select()
    .from(subscribers)
    .where(
      and(
        eq(subscribers.project_id, project_id),
        isAmong(db, subscribers.id, sql`${JSON.stringify(ids)}`),
      ),
    )
    .orderBy(subscribers.id)

const unsubscribesOf = prepared(
  { project_id: unsubscribes.project_id, ids: idList },
  (db: Reader, slot) =>
    db
      .select()
      .from(unsubscribes)
      .where(
        and(
          eq(unsubscribes.project_id, slot.project_id),
          isAmong(db, unsubscribes.subscriber_id, slot.ids),
        ),
      ),
)
