import { and, eq, gt, isNotNull, isNull, lte, or, type SQL } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { isUuid, newId } from "../core/ids"
import { millis, millisFrom, now } from "../core/time"
import { hashOf, lookupOf, newKeyText, visibleParts } from "../lib/api-key"
import { held } from "../store/locks"
import type { Reader, Tx } from "../store/store"
import { newestFirst, type Stretch } from "../store/stretch"
import { apiKeys } from "./tables"

export type Row = typeof apiKeys.$inferSelect
export type ApiKey = ReturnType<typeof record>
export type KeyStatus = "active" | "revoked" | "expired"

export interface NewApiKey {
  name: string
  scopes: string[]
  /** The only domain that it may send from. */
  domain_id?: string | null
  expires_at: string | null
  ip_addresses: string[]
}

interface Owner {
  account_id: string
  project_id: string
  created_by: Row["created_by"]
}

/** The secret leaves here, once, as `key`. The table knows only its hash. */
export async function create(
  tx: Tx,
  { created_by, ...owner }: Owner,
  input: NewApiKey,
  by: audit.By = audit.LOCAL,
) {
  const key = newKeyText()
  const row: Row = {
    id: newId(),
    ...owner,
    ...input,
    domain_id: input.domain_id ?? null,
    lookup: lookupOf(key) ?? "",
    key_hash: hashOf(key),
    ...visibleParts(key),
    created_by,
    last_used_at: null,
    last_used_ip: null,
    created_at: now(),
    revoked_at: null,
    successor_id: null,
  }
  await tx.insert(apiKeys).values(row)
  await log(tx, by, row, "api_key.created", { after: record(row) })
  return { ...record(row), key }
}

export interface ListQuery {
  status?: KeyStatus | undefined
}

export interface Part extends Stretch {
  limit: number
  offset: number
}

/** Newest first. */
export async function list(db: Reader, project_id: string, query: ListQuery & Part) {
  const { where, order } = newestFirst(apiKeys.id, query)
  const rows = db
    .select()
    .from(apiKeys)
    .where(and(matching(project_id, query), where))
  const page = rows.orderBy(order).limit(query.limit).offset(query.offset)
  return (await page).map(record)
}

export async function count(db: Reader, project_id: string, query: ListQuery): Promise<number> {
  // A project holds few keys, so that counting them is cheaper than keeping a total.
  const rows = await db.select({ id: apiKeys.id }).from(apiKeys).where(matching(project_id, query))
  return rows.length
}

export async function find(db: Reader, project_id: string, id: string) {
  const rows = isUuid(id) ? await db.select().from(apiKeys).where(ours(project_id, id)) : []
  return rows[0] ? record(rows[0]) : gone()
}

const gone = () => fail("not_found", "There is no such API key.")

/** Acts on the next request. Doing it again changes nothing and answers the same. */
export async function revoke(tx: Tx, project_id: string, id: string, by: audit.By = audit.LOCAL) {
  const before = await hold(tx, project_id, id)
  if (before.revoked_at) return record(before)
  return change(tx, before, { revoked_at: now() }, "api_key.revoked", by)
}

/** The row itself, which nobody else changes before the transaction ends. Throws 404. */
export async function hold(tx: Tx, project_id: string, id: string): Promise<Row> {
  const query = () => held(tx.select().from(apiKeys).where(ours(project_id, id)))
  const [row] = isUuid(id) ? await query() : []
  return row ?? gone()
}

/** Writes what changes, tells the audit log, and returns the record. */
export async function change(
  tx: Tx,
  before: Row,
  changes: Partial<Row>,
  action: string,
  by: audit.By,
): Promise<ApiKey> {
  const after = { ...before, ...changes }
  await tx.update(apiKeys).set(changes).where(eq(apiKeys.id, before.id))
  await log(tx, by, after, action, { before: record(before), after: record(after) })
  return record(after)
}

/** Remembers the last use; the guard calls it at most once a minute for a key. */
export const touch = (tx: Tx, id: string, ip: string) =>
  tx.update(apiKeys).set({ last_used_at: now(), last_used_ip: ip }).where(eq(apiKeys.id, id))

const ours = (project_id: string, id: string) =>
  and(eq(apiKeys.project_id, project_id), eq(apiKeys.id, id))

const matching = (project_id: string, { status }: ListQuery): SQL | undefined =>
  and(eq(apiKeys.project_id, project_id), status && STATUS_IS[status]())

const STATUS_IS: Record<KeyStatus, () => SQL | undefined> = {
  revoked: () => isNotNull(apiKeys.revoked_at),
  expired: () => and(isNull(apiKeys.revoked_at), lte(apiKeys.expires_at, now())),
  active: () =>
    and(isNull(apiKeys.revoked_at), or(isNull(apiKeys.expires_at), gt(apiKeys.expires_at, now()))),
}

/** The Key record of the contract: everything but what finds and proves it. */
export function record(whole: Row) {
  const { account_id: _, lookup: __, key_hash: ___, successor_id: ____, ...row } = whole
  const expired = row.expires_at !== null && millisFrom(row.expires_at) <= millis()
  const status: KeyStatus = row.revoked_at ? "revoked" : expired ? "expired" : "active"
  const created_by = row.created_by as Pick<audit.By["actor"], "type" | "id">
  return { ...row, mode: "live" as const, created_by, status }
}

type Change = Pick<audit.NewEntry, "before" | "after">

const log = (tx: Tx, by: audit.By, row: Row, action: string, change: Change) =>
  audit.record(tx, {
    account_id: row.account_id,
    project_id: row.project_id,
    actor: by.actor,
    ip: by.ip,
    action,
    target: { type: "api_key", id: row.id },
    ...change,
  })
