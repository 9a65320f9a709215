import { and, eq, sql } from "drizzle-orm"
import { isAmong } from "../store/dialect"
import type { Reader } from "../store/store"
import type { DecidedSubscriber } from "./decision"
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
  const list = sql`${JSON.stringify([...new Set(ids)])}`
  const ours = and(eq(subscribers.project_id, project_id), isAmong(db, subscribers.id, list))
  const rows = await lock(db.select().from(subscribers).where(ours).orderBy(subscribers.id))
  const ended = await db
    .select()
    .from(unsubscribes)
    .where(
      and(eq(unsubscribes.project_id, project_id), isAmong(db, unsubscribes.subscriber_id, list)),
    )
  const endedOf = Map.groupBy(ended, ({ subscriber_id }) => subscriber_id)
  return new Map(rows.map((row) => [row.id, { ...row, unsubscribes: endedOf.get(row.id) ?? [] }]))
}
