import { and, eq, inArray } from "drizzle-orm"
import { TOPIC_KEY } from "../lib/text"
import type { Reader } from "../store/store"
import { topics } from "./tables"

/** A key that any topic may have (contract 43, section 3). */
const KEY = new RegExp(TOPIC_KEY)

/** Which of these keys topics of the project have. */
export async function keysAmong(
  db: Reader,
  project_id: string,
  keys: readonly string[],
): Promise<Set<string>> {
  const possible = keys.filter((key) => KEY.test(key))
  if (possible.length === 0) return new Set()
  const rows = await db
    .select({ key: topics.key })
    .from(topics)
    .where(and(eq(topics.project_id, project_id), inArray(topics.key, possible)))
  return new Set(rows.map(({ key }) => key))
}
