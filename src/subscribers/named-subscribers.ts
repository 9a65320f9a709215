import { and, eq, inArray } from "drizzle-orm"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import type { Reader } from "../store/store"
import { subscribers } from "./tables"

interface NamedSubscriber {
  id: string
  external_id: string
}

/** A path may hold NUL; Postgres stores none. */
const isExternalId = (name: string): boolean => !isUuid(name) && !name.includes("\0")

/**
 * Subscribers of the project by the names that a request has for them: a UUID is an id, any other
 * text an external id. A name that no subscriber has is not in the map. `hold` may lock the rows.
 */
export async function lookupAll(
  db: Reader,
  project_id: string,
  names: readonly string[],
  hold: <Query extends object>(query: Query) => Query = (query) => query,
): Promise<Map<string, NamedSubscriber>> {
  const { id, external_id } = subscribers
  const found = new Map<string, NamedSubscriber>()
  const [ids, externals] = [names.filter(isUuid), names.filter(isExternalId)]
  for (const [column, list] of [[id, ids] as const, [external_id, externals] as const]) {
    if (list.length === 0) continue
    const named = and(eq(subscribers.project_id, project_id), inArray(column, list))
    const rows = db.select({ id, external_id }).from(subscribers).where(named)
    for (const row of await hold(rows.orderBy(id))) {
      found.set(column === id ? row.id : row.external_id, row)
    }
  }
  return found
}

/** By id or external id. Throws 404 `subscriber_not_found`. */
export async function find(db: Reader, project_id: string, name: string): Promise<NamedSubscriber> {
  const found = await lookupAll(db, project_id, [name])
  const message = "There is no such subscriber in this project. Give an id or an external id."
  return found.get(name) ?? fail("subscriber_not_found", message)
}
