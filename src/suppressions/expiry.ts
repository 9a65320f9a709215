import { and, asc, inArray, isNotNull, lte } from "drizzle-orm"
import { now } from "../core/time"
import { forUpdate } from "../store/dialect"
import type { Store } from "../store/store"
import { removeRows } from "./suppressions"
import { suppressions } from "./tables"

const PURGE_LIMIT = 200

/**
 * Removes up to 200 suppressions that have expired, and emits `suppression.deleted` for each. They did
 * not count any more. Returns how many.
 */
export async function purgeExpired(store: Store): Promise<number> {
  const { id, expires_at } = suppressions
  const over = and(isNotNull(expires_at), lte(expires_at, now()))
  const old = await store.read.select({ id }).from(suppressions).where(over).limit(PURGE_LIMIT)
  if (old.length === 0) return 0
  const ids = old.map((row) => row.id)
  await store.tx(async (tx) => {
    const found = tx
      .select()
      .from(suppressions)
      .where(and(inArray(id, ids), over))
    const rows = await forUpdate(found.orderBy(asc(id)))
    const projects = Map.groupBy(rows, ({ project_id }) => project_id)
    for (const owner of [...projects.keys()].sort()) {
      await removeRows(tx, owner, projects.get(owner) ?? [])
    }
  })
  return old.length
}
