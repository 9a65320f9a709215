import { and, asc, desc, eq, gte, inArray, or, type SQL, sql } from "drizzle-orm"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import { millisFrom, now } from "../core/time"
import { isAskedId } from "../store/columns"
import { boundedList } from "../store/rows"
import { inserter } from "../store/statements"
import type { Reader, Store } from "../store/store"
import { WriteBehind } from "../store/write-behind"
import { requestLog } from "./tables"

export interface AnsweredRequest {
  request_id: string
  project_id: string | null
  /** The caller is not known to us: anonymous ones may not fill our disk. */
  is_anonymous: boolean
  key_id: string | null
  method: string
  path: string
  status: number
  duration_ms: number
  ip: string
  error_code: string | null
}

const AT_ONCE = 250
const MOST_WAITING = 20_000
const ANONYMOUS_PER_FLUSH = 10

/** Two thousand a second. Each costs as much as a twentieth of accepting an email. */
const SUCCESSES_PER_FLUSH = 1000
const MOST_PATH = 200

interface RequestLogOptions {
  store: Store
  /** Whether the disk has room for entries that are not essential. */
  hasRoom: () => boolean
}

/**
 * What was asked, a few days long. A request only leaves a note in memory. In a flood what succeeded is kept in part,
 * and what failed is kept.
 */
export class RequestLog {
  readonly #behind: WriteBehind<typeof requestLog.$inferInsert>
  #anonymous = 0
  #successes = 0

  constructor({ store, hasRoom }: RequestLogOptions) {
    this.#behind = new WriteBehind({
      write: (rows) => store.tx((tx) => insertEntries(tx, rows)),
      ...{ limit: AT_ONCE, most: MOST_WAITING, hasRoom },
      lost: "the request log left out entries: too many requests came, or there was no room",
    })
  }

  add(answered: AnsweredRequest) {
    if (answered.is_anonymous && ++this.#anonymous > ANONYMOUS_PER_FLUSH) return
    if (answered.status < 400 && ++this.#successes > SUCCESSES_PER_FLUSH) this.#behind.lose(1)
    else if (this.#behind.admit()) {
      const id = newId()
      const path = answered.path.slice(0, MOST_PATH)
      this.#behind.put(id, { ...answered, id, path, created_at: now() })
    }
  }

  writeRipe = (): Promise<void> => this.#begin(this.#behind.writeRipe())

  /** Resolves when everything noted so far is written, or given up. */
  flush = (): Promise<void> => this.#begin(this.#behind.flush())

  #begin(writing: Promise<void>): Promise<void> {
    this.#anonymous = 0
    this.#successes = 0
    return writing
  }
}

const insertEntries = inserter(requestLog)

const PURGED_AT_ONCE = 500

export interface RequestLogFilter {
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

export type RequestLogRow = typeof requestLog.$inferSelect

/** Newest first. */
export function list(db: Reader, filter: RequestLogFilter) {
  const { project_id, request_id } = filter
  const own = ofProject(project_id)
  const ofRequest = request_id === undefined ? undefined : eq(requestLog.request_id, request_id)
  return boundedList<RequestLogRow>(db, {
    owner: project_id ?? "",
    table: requestLog,
    along: { rows: requestLog, id: requestLog.id, where: ofRequest ?? own },
    filter: and(ofRequest && own, matching(filter)),
  })
}

/**
 * The row of a request, by the id that its answer had; several may have been given the same one, and
 * the latest counts. Throws 404.
 */
export async function find(
  db: Reader,
  { project_id }: Pick<RequestLogFilter, "project_id">,
  request_id: string,
) {
  const named = and(eq(requestLog.request_id, request_id), ofProject(project_id))
  const same = db.select().from(requestLog).where(named)
  const [row] = await same.orderBy(desc(requestLog.id)).limit(1)
  return row ?? fail("not_found", "There is no such request.")
}

const ofProject = (project_id: string | undefined) =>
  project_id === undefined ? undefined : eq(requestLog.project_id, project_id)

/** Forgets some of what is older than that moment. Returns how many went; 0 when none is left. */
export async function purgeRequestLog(store: Store, before: string): Promise<number> {
  // Ids are made in the order of time, so the oldest come first without an index on time.
  const { id, created_at } = requestLog
  const oldest = await store.read
    .select({ id, created_at })
    .from(requestLog)
    .orderBy(asc(id))
    .limit(PURGED_AT_ONCE)
  const cut = millisFrom(before)
  const ids = oldest.flatMap((row) => (millisFrom(row.created_at) < cut ? row.id : []))
  if (ids.length > 0) await store.tx((tx) => tx.delete(requestLog).where(inArray(id, ids)))
  return ids.length
}

function matching(filter: RequestLogFilter): SQL | undefined {
  const { least_status, most_status, key_id } = filter
  return and(
    least_status === undefined ? undefined : gte(requestLog.status, least_status),
    most_status === undefined ? undefined : sql`${requestLog.status} <= ${most_status}`,
    key_id === undefined ? undefined : isAskedId(requestLog.key_id, key_id),
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
