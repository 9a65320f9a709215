import { and, asc, count, desc, eq, gte, inArray, lt, or, type SQL, sql } from "drizzle-orm"
import { millisFrom } from "../core/time"
import type { Reader, Store } from "../store/store"
import { requestLog } from "./tables"

const AT_ONCE = 500

export interface Filter {
  /** Undefined for the operator, who sees what belongs to nobody, too. */
  project_id: string | undefined
  /** Inclusive. */
  least_status: number | undefined
  most_status: number | undefined
  /** This path, and all below it. */
  path: string | undefined
  key_id: string | undefined
  request_id: string | undefined
}

interface Part {
  limit: number
  offset: number
  /** The id of the last entry already seen. */
  after: string | undefined
}

export type Row = typeof requestLog.$inferSelect

/** Newest first. */
export async function list(db: Reader, filter: Filter, { limit, offset, after }: Part) {
  const older = after ? lt(requestLog.id, after) : undefined
  const wanted = and(matching(filter), older)
  const rows = db.select().from(requestLog).where(wanted).orderBy(desc(requestLog.id))
  return await rows.limit(limit).offset(offset)
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
    key_id === undefined ? undefined : eq(requestLog.key_id, key_id),
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
