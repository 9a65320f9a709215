import { and, desc, eq, gt, isNotNull, isNull, lt, lte, or, type SQL } from "drizzle-orm"
import { fail } from "../core/errors"
import { isUuid, newId } from "../core/ids"
import { millis, millisFrom, now } from "../core/time"
import { hashOf, lookupOf, newKeyText, visibleParts } from "../lib/api-key"
import type { Reader, Tx } from "../store/store"
import type { Caller } from "../accounts/caller"
import { isWithinOwn } from "./scopes"
import { apiKeys } from "./tables"

type Row = typeof apiKeys.$inferSelect
export type KeyStatus = "active" | "revoked" | "expired"

export interface NewApiKey {
  name: string
  scopes: string[]
  expires_at: string | null
  ip_addresses: string[]
}

interface Owner {
  account_id: string
  project_id: string
  created_by: Row["created_by"]
}

/** The secret leaves here, once, as `key`. The table knows only its hash. */
export async function create(tx: Tx, { created_by, ...owner }: Owner, input: NewApiKey) {
  const key = newKeyText()
  const row: Row = {
    id: newId(),
    ...owner,
    ...input,
    lookup: lookupOf(key) ?? "",
    key_hash: hashOf(key),
    ...visibleParts(key),
    created_by,
    last_used_at: null,
    last_used_ip: null,
    created_at: now(),
    revoked_at: null,
  }
  await tx.insert(apiKeys).values(row)
  return { ...record(row), key }
}

/** A caller hands on at most what he has himself. Throws 403 `forbidden`. */
export function mayGrant(caller: Caller, scopes: string[]) {
  if (isWithinOwn(caller.scopes, scopes)) return
  const wider = scopes.filter((scope) => !caller.scopes.includes(scope))
  fail("forbidden", `A key cannot grant more than it has: ${wider.join(", ")}.`, {
    required_scope: wider[0],
  })
}

export interface ListQuery {
  status?: KeyStatus | undefined
  /** The id of the last key already seen. */
  after?: string | undefined
}

export interface Part {
  limit: number
  offset: number
}

/** Newest first. */
export async function list(db: Reader, project_id: string, query: ListQuery & Part) {
  const rows = db.select().from(apiKeys).where(matching(project_id, query))
  const page = rows.orderBy(desc(apiKeys.id)).limit(query.limit).offset(query.offset)
  return (await page).map(record)
}

export async function count(db: Reader, project_id: string, query: ListQuery): Promise<number> {
  // A project holds few keys, so that counting them is cheaper than keeping a total.
  const rows = await db.select({ id: apiKeys.id }).from(apiKeys).where(matching(project_id, query))
  return rows.length
}

export async function find(db: Reader, project_id: string, id: string) {
  const rows = isUuid(id) ? await db.select().from(apiKeys).where(ours(project_id, id)) : []
  return rows[0] ? record(rows[0]) : fail("not_found", "There is no such API key.")
}

/** Acts on the next request. Doing it again changes nothing and answers the same. */
export async function revoke(tx: Tx, project_id: string, id: string) {
  const alive = and(ours(project_id, id), isNull(apiKeys.revoked_at))
  await find(tx, project_id, id)
  await tx.update(apiKeys).set({ revoked_at: now() }).where(alive)
  return find(tx, project_id, id)
}

/** Remembers the last use; the guard calls it at most once a minute for a key. */
export const touch = (tx: Tx, id: string, ip: string) =>
  tx.update(apiKeys).set({ last_used_at: now(), last_used_ip: ip }).where(eq(apiKeys.id, id))

const ours = (project_id: string, id: string) =>
  and(eq(apiKeys.project_id, project_id), eq(apiKeys.id, id))

function matching(project_id: string, { status, after }: ListQuery): SQL | undefined {
  const older = after ? lt(apiKeys.id, after) : undefined
  return and(eq(apiKeys.project_id, project_id), status && STATUS_IS[status](), older)
}

const STATUS_IS: Record<KeyStatus, () => SQL | undefined> = {
  revoked: () => isNotNull(apiKeys.revoked_at),
  expired: () => and(isNull(apiKeys.revoked_at), lte(apiKeys.expires_at, now())),
  active: () =>
    and(isNull(apiKeys.revoked_at), or(isNull(apiKeys.expires_at), gt(apiKeys.expires_at, now()))),
}

/** The Key record of the contract: everything but what finds and proves it. */
function record({ account_id: _, lookup: __, key_hash: ___, ...row }: Row) {
  const expired = row.expires_at !== null && millisFrom(row.expires_at) <= millis()
  const status: KeyStatus = row.revoked_at ? "revoked" : expired ? "expired" : "active"
  return { ...row, mode: "live" as const, status }
}
