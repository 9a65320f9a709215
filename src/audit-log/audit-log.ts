import { and, asc, eq, inArray, lt, type SQL } from "drizzle-orm"
import { fail } from "../core/errors"
import { firstIdAt, newId } from "../core/ids"
import { millisFrom, now } from "../core/time"
import { isAskedId } from "../store/columns"
import { bump, bumpAll, total } from "../store/counters"
import { idsBetween, type RowList, rowList, timesBetween } from "../store/rows"
import { inserter } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import { type Actor, auditLog } from "./tables"

/** The total of an account. */
const COUNTER = "audit_log"

/** The actor of a change and their address; a caller of the API serves as one. */
export interface By {
  actor: Actor
  ip: string | null
}

/** The command line on this machine. */
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
 * Writes down a change, in the transaction that makes it. Fields whose names mean a secret are left out,
 * so that a whole row may be given.
 */
export const record = (tx: Tx, by: By, entry: NewAuditEntry): Promise<void> =>
  recordAll(tx, by, entry.account_id, [entry])

/** As `record`, for many changes of one account at once. */
export async function recordAll(
  tx: Tx,
  by: By,
  account_id: string,
  list: Omit<NewAuditEntry, "account_id">[],
): Promise<void> {
  await insertEntries(
    tx,
    list.map((entry) => rowOf(by, { ...entry, account_id })),
  )
  await bump(tx, account_id, COUNTER, list.length)
}

function rowOf({ actor, ip }: By, entry: NewAuditEntry) {
  const { account_id, project_id = null, action, target, before, after } = entry
  return {
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
}

const insertEntries = inserter(auditLog)

const SECRET =
  /(^|_)(password|secret|token|hash|lookup|code|codes|key|successor|pending|challenge)(_|$)/

/** Ids, compared forms and rules only sound like one; neither is whatever is true or false. */
const HARMLESS =
  /(_id|_ids|_at|_key_id|^email_key|^mfa_enabled|^password_policy|^token_claims|^android_sms_hash)$/

/** The same value without fields that hold secrets, at any depth. */
export function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets)
  if (typeof value !== "object" || value === null) return value
  const kept = Object.entries(value).filter(
    ([name, inner]) => typeof inner === "boolean" || HARMLESS.test(name) || !SECRET.test(name),
  )
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutSecrets(inner)]))
}

interface AuditFilter {
  actor_id?: string | undefined
  action?: string | undefined
  target_type?: string | undefined
  /** Inclusive. */
  after: string | undefined
  /** Exclusive. */
  before: string | undefined
}

/** What happened in an account, newest first. The total is a counter's where nothing is filtered. */
export function list(db: Reader, account_id: string, filter: AuditFilter): RowList<AuditRow> {
  const missing = () => fail("not_found", "There is no such entry in the audit log.")
  const rows = rowList(db, auditLog, {
    owner: account_id,
    of: eq(auditLog.account_id, account_id),
    indexed: indexed(filter),
    filter: matching(filter),
    missing,
  })
  const filtered = Object.values(filter).some((value) => value !== undefined)
  return filtered ? rows : { ...rows, total: () => total(db, account_id, COUNTER) }
}

type AuditRow = typeof auditLog.$inferSelect

const indexed = ({ actor_id, ...times }: AuditFilter): SQL | undefined =>
  and(
    actor_id === undefined ? undefined : isAskedId(auditLog.actor_id, actor_id),
    idsBetween(auditLog.id, times),
  )

function matching({ action, target_type, ...times }: AuditFilter): SQL | undefined {
  return and(
    action === undefined ? undefined : eq(auditLog.action, action),
    target_type === undefined ? undefined : eq(auditLog.target_type, target_type),
    timesBetween(auditLog.created_at, times),
  )
}

/** The entry as the contract writes it. */
export function toResponse(row: AuditRow) {
  const { id, actor, action, target_type, target_id, project_id, ip, before, after } = row
  const target = { type: target_type, id: target_id }
  return { id, actor, action, target, project_id, ip, before, after, created_at: row.created_at }
}

/** Rows of one transaction, so that other transactions run between two of them. */
const BATCH = 200

/** Removes up to 200 entries that are older than this moment (ISO 8601). Returns how many. */
export async function purgeAuditLog(store: Store, before: string): Promise<number> {
  const { id, account_id } = auditLog
  const old = lt(id, firstIdAt(millisFrom(before)))
  const some = store.read.select({ id }).from(auditLog).where(old).orderBy(asc(id))
  const ids = (await some.limit(BATCH)).map((row) => row.id)
  if (ids.length === 0) return 0
  await store.tx(async (tx) => {
    const gone = await tx.delete(auditLog).where(inArray(id, ids)).returning({ account_id })
    await bumpAll(
      tx,
      gone.map(({ account_id: owner }) => ({ owner, name: COUNTER, by: -1 })),
    )
  })
  return ids.length
}
