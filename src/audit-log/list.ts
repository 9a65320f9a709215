import { and, count, desc, eq, gte, lt, type SQL } from "drizzle-orm"
import { total } from "../store/counters"
import type { Reader } from "../store/store"
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

interface Part {
  limit: number
  offset: number
  /** The id of the last entry already seen. */
  after: string | undefined
}

/** What happened in an account, newest first. */
export async function list(db: Reader, account_id: string, filter: Filter, part: Part) {
  const older = part.after ? lt(auditLog.id, part.after) : undefined
  const rows = await db
    .select()
    .from(auditLog)
    .where(and(matching(account_id, filter), older))
    .orderBy(desc(auditLog.id))
    .limit(part.limit)
    .offset(part.offset)
  return rows.map(record)
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
    actor_id === undefined ? undefined : eq(auditLog.actor_id, actor_id),
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
