import { and, asc, count, desc, eq, gte, inArray, or, type SQL, sql } from "drizzle-orm"
import { fail } from "../core/errors"
import { millisFrom } from "../core/time"
import { isAskedId } from "../store/id-filters"
import type { Reader, Store } from "../store/store"
import { newestFirst, type Stretch } from "../store/stretch"
import { requestLog } from "./tables"

const AT_ONCE = 500

export interface Filter {
  /** Undefined for the operator: then entries that belong to no project are seen, too. */
  project_id: string | undefined
  /** Inclusive. */
  least_status: number | undefined
  most_status: number | undefined
  /** This path, and all below it. */
  path: string | undefined
  key_id: string | undefined
  request_id: string | undefined
}

interface Part extends Stretch {
  limit: number
  offset: number
}

export type Row = typeof requestLog.$inferSelect

/** Newest first. */
export async function list(db: Reader, filter: Filter, { limit, offset, ...stretch }: Part) {
  const { where, order } = newestFirst(requestLog.id, stretch)
  const wanted = and(matching(filter), where)
  const rows = db.select().from(requestLog).where(wanted).orderBy(order)
  return await rows.limit(limit).offset(offset)
}

/**
 * The row of a request, by the id that its answer had; several may have been given the same one, and
 * the latest counts. Throws 404.
 */
export async function find(db: Reader, filter: Pick<Filter, "project_id">, request_id: string) {
  const { project_id } = filter
  const own = project_id === undefined ? undefined : eq(requestLog.project_id, project_id)
  const same = db
    .select()
    .from(requestLog)
    .where(and(eq(requestLog.request_id, request_id), own))
  const [row] = await same.orderBy(desc(requestLog.id)).limit(1)
  return row ?? fail("not_found", "There is no such request.")
}

export async function countAll(db: Reader, filter: Filter): Promise<number> {
  const [row] = await db.select({ all: count() }).from(requestLog).where(matching(filter))
  return row?.all ?? 0
}

/** Forgets some of what is older than that moment. Returns how many went; 0 when none is left. */
export async function purgeRequestLog(store: Store, before: string): Promise<number> {
  // Ids are made in the order of time, so the oldest come first without an index on time.
  const { id, created_at } = requestLog
  const oldest = await store.read
    .select({ id, created_at })
    .from(requestLog)
    .orderBy(asc(id))
    .limit(AT_ONCE)
  const cut = millisFrom(before)
  const ids = oldest.flatMap((row) => (millisFrom(row.created_at) < cut ? row.id : []))
  if (ids.length > 0) await store.tx((tx) => tx.delete(requestLog).where(inArray(id, ids)))
  return ids.length
}

function matching(filter: Filter): SQL | undefined {
  const { project_id, least_status, most_status, key_id, request_id } = filter
  return and(
    project_id === undefined ? undefined : eq(requestLog.project_id, project_id),
    least_status === undefined ? undefined : gte(requestLog.status, least_status),
    most_status === undefined ? undefined : sql`${requestLog.status} <= ${most_status}`,
    key_id === undefined ? undefined : isAskedId(requestLog.key_id, key_id),
    request_id === undefined ? undefined : eq(requestLog.request_id, request_id),
    under(filter.path),
  )
}

/** By characters, not by LIKE: `_` is common in paths, and means something there. */
function under(path: string | undefined): SQL | undefined {
  if (path === undefined) return undefined
  const below = `${path.replace(/\/+$/, "")}/`
  const within = sql`substr(${requestLog.path}, 1, ${below.length}) = ${below}`
  return or(eq(requestLog.path, path), within)
}
