import { and, eq, gte, lt, type SQL } from "drizzle-orm"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import { bump, total } from "../store/counters"
import { isAskedId } from "../store/id-filters"
import { countRows, type ListWindow, newestRows, rowById } from "../store/rows"
import { inserter } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { type Actor, auditLog } from "./tables"

const COUNTER = "audit_log"

/** Who is behind a change, and at which address; a caller of the API serves as one. */
export interface By {
  actor: Actor
  ip: string | null
}

/** Somebody who sits at the machine itself. */
export const LOCAL: By = { actor: { type: "local", id: null, name: null }, ip: null }

export const SYSTEM: By = { actor: { type: "system", id: null, name: null }, ip: null }

/** What was changed, as it was before and as it is after. */
export interface AuditChange {
  before?: unknown
  after?: unknown
}

export interface NewAuditEntry extends AuditChange {
  account_id: string
  project_id?: string | null
  /** `noun.verb`, as `member.removed`. */
  action: string
  target: { type: string; id: string | null }
}

/**
 * Writes down a change, in the transaction that makes it. Whatever a field's name tells to be a
 * secret is left out, so that a whole row may be handed in.
 */
export async function record(tx: Tx, { actor, ip }: By, entry: NewAuditEntry): Promise<void> {
  const { account_id, project_id = null, action, target, before, after } = entry
  const row = {
    id: newId(),
    account_id,
    project_id,
    actor,
    actor_id: actor.id,
    action,
    target_type: target.type,
    target_id: target.id,
    ip,
    before: before === undefined ? null : withoutSecrets(before),
    after: after === undefined ? null : withoutSecrets(after),
    created_at: now(),
  }
  await insertEntries(tx, [row])
  await bump(tx, account_id, COUNTER, 1)
}

const insertEntries = inserter(auditLog)

const SECRET =
  /(^|_)(password|secret|token|hash|lookup|code|codes|key|successor|pending|challenge)(_|$)/

/** Ids and compared forms only sound like one. */
const HARMLESS = /(_id|_ids|_at|_key_id|^email_key|^mfa_enabled)$/

/** The same value without fields that hold secrets, at any depth. */
export function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets)
  if (typeof value !== "object" || value === null) return value
  const kept = Object.entries(value).filter(([name]) => HARMLESS.test(name) || !SECRET.test(name))
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutSecrets(inner)]))
}

export interface AuditFilter {
  actor_id?: string | undefined
  action?: string | undefined
  target_type?: string | undefined
  /** Inclusive. */
  after: string | undefined
  /** Exclusive. */
  before: string | undefined
}

/** What happened in an account, newest first. */
export async function list(
  db: Reader,
  account_id: string,
  filter: AuditFilter,
  window: ListWindow,
) {
  return (await newestRows(db, auditLog, matching(account_id, filter), window)).map(auditRecord)
}

/** Throws 404. */
export async function find(db: Reader, account_id: string, id: string) {
  const row = await rowById(db, auditLog, id, eq(auditLog.account_id, account_id))
  return row ?? fail("not_found", "There is no such entry in the audit log.")
}

/** From the counter where nothing is filtered. */
export async function count(db: Reader, account_id: string, filter: AuditFilter): Promise<number> {
  const filtered = Object.values(filter).some((value) => value !== undefined)
  if (!filtered) return total(db, account_id, COUNTER)
  return countRows(db, auditLog, matching(account_id, filter))
}

function matching(account_id: string, filter: AuditFilter): SQL | undefined {
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
function auditRecord(row: typeof auditLog.$inferSelect) {
  const { id, actor, action, target_type, target_id, project_id, ip, before, after } = row
  const target = { type: target_type, id: target_id }
  return { id, actor, action, target, project_id, ip, before, after, created_at: row.created_at }
}
