import { and, count, eq, gte, lt, type SQL } from "drizzle-orm"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import { total } from "../store/counters"
import { isAskedId } from "../store/id-filters"
import type { Reader } from "../store/store"
import { newestFirst, type Stretch } from "../store/stretch"
import { COUNTER } from "./audit-log"
import { auditLog } from "./tables"

export interface Filter {
  actor_id?: string | undefined
  action?: string | undefined
  target_type?: string | undefined
  /** Inclusive. */
  after: string | undefined
  /** Exclusive. */
  before: string | undefined
}

interface Part extends Stretch {
  limit: number
  offset: number
}

/** What happened in an account, newest first. */
export async function list(db: Reader, account_id: string, filter: Filter, part: Part) {
  const { where, order } = newestFirst(auditLog.id, part)
  const rows = await db
    .select()
    .from(auditLog)
    .where(and(matching(account_id, filter), where))
    .orderBy(order)
    .limit(part.limit)
    .offset(part.offset)
  return rows.map(record)
}

/** Throws 404. */
export async function find(db: Reader, account_id: string, id: string) {
  const own = and(eq(auditLog.account_id, account_id), eq(auditLog.id, id))
  const rows = isUuid(id) ? await db.select().from(auditLog).where(own) : []
  return rows[0] ?? fail("not_found", "There is no such entry in the audit log.")
}

/** From the counter where nothing is filtered. */
export async function countAll(db: Reader, account_id: string, filter: Filter): Promise<number> {
  const filtered = Object.values(filter).some((value) => value !== undefined)
  if (!filtered) return total(db, account_id, COUNTER)
  const [row] = await db.select({ all: count() }).from(auditLog).where(matching(account_id, filter))
  return row?.all ?? 0
}

function matching(account_id: string, filter: Filter): SQL | undefined {
  const { actor_id, action, target_type, after, before } = filter
  return and(
    eq(auditLog.account_id, account_id),
    actor_id === undefined ? undefined : isAskedId(auditLog.actor_id, actor_id),
    action === undefined ? undefined : eq(auditLog.action, action),
    target_type === undefined ? undefined : eq(auditLog.target_type, target_type),
    after === undefined ? undefined : gte(auditLog.created_at, after),
    before === undefined ? undefined : lt(auditLog.created_at, before),
  )
}

/** The entry as the contract writes it. */
function record(row: typeof auditLog.$inferSelect) {
  const { id, actor, action, target_type, target_id, project_id, ip, before, after } = row
  const target = { type: target_type, id: target_id }
  return { id, actor, action, target, project_id, ip, before, after, created_at: row.created_at }
}
