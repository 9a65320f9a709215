import { and, eq, sql } from "drizzle-orm"
import { idList, isAmong } from "../store/dialect"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import type { DecidedSubscriber } from "./decision"
import { byIds } from "./find-subscriber"
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
