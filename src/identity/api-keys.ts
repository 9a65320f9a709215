import { and, eq, gt, isNotNull, isNull, lt, lte, or, type SQL } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { conflict, fail, invalid } from "../core/errors"
import { firstIdAt } from "../core/ids"
import { isoFrom, isPast, millis, millisFrom, now, secondsFromNow } from "../core/time"
import { isInside } from "../lib/ip-ranges"
import { fieldsOf } from "../lib/record-fields"
import { removeSome } from "../store/rows"
import type { Store, Tx } from "../store/store"
import { hashOf, lookupOf, newKeyText, visibleParts } from "./authenticate"
import type { Caller } from "./caller"
import { noun } from "./noun"
import * as schemas from "./schemas"
import { isWithinOwn } from "./scopes"
import { apiKeys } from "./tables"

type ApiKeyRow = typeof apiKeys.$inferSelect
type ApiKey = ReturnType<typeof toResponse>
type KeyStatus = "active" | "revoked" | "expired"

const HOUR_MILLISECONDS = 3_600_000

export interface NewApiKey {
  name: string
  scopes: string[]
  /** The only domain that it may send from. */
  domain_id?: string | null
  expires_at: string | null
  ip_addresses: string[]
}

type KeyOwner = Pick<ApiKeyRow, "account_id" | "project_id" | "created_by">

/** A caller makes keys of its own project. */
export const ownedBy = ({ account_id, project_id, actor: { type, id } }: Caller): KeyOwner => ({
  account_id,
  project_id,
  created_by: { type, id },
})

/** The Key record of the contract: everything but what finds and proves it. */
export function toResponse(row: ApiKeyRow) {
  const expired = row.expires_at !== null && isPast(row.expires_at)
  const status = row.revoked_at ? "revoked" : expired ? "expired" : "active"
  return fieldsOf(schemas.ApiKey, { ...row, mode: "live", status })
}

/** Never removed by a caller: it is revoked. */
export const apiKey = noun({
  name: "api_key",
  table: apiKeys,
  missing: () => fail("not_found", "There is no such API key."),
  toResponse,
  audited: toResponse,
})

/** The secret leaves here, once, as `key`. The table knows only its hash. */
export async function create(
  tx: Tx,
  { created_by, ...owner }: KeyOwner,
  input: NewApiKey,
  by: audit.By = audit.LOCAL,
) {
  const key = newKeyText()
  const row = await apiKey.insert(
    tx,
    { ...by, ...owner },
    {
      ...input,
      created_by,
      domain_id: input.domain_id ?? null,
      lookup: lookupOf(key) ?? "",
      key_hash: hashOf(key),
      ...visibleParts(key),
      last_used_at: null,
      last_used_ip: null,
      revoked_at: null,
      successor_id: null,
    },
  )
  return { ...toResponse(row), key }
}

/**
 * The key that a caller may make: what is undefined is as the caller's own. Throws 403 `forbidden`
 * for scopes and addresses that the caller lacks, 422 for a later end than the caller's own.
 */
export function grantable(caller: Caller, wanted: WantedApiKey): NewApiKey {
  const { expires_at = caller.expires_at, ip_addresses = caller.ip_addresses } = wanted
  requireOutlives(caller, expires_at)
  requireScopes(caller, wanted.scopes, "You cannot grant scopes that you do not have")
  requireReach(caller, ip_addresses)
  return { ...wanted, expires_at, ip_addresses }
}

export interface WantedApiKey extends Omit<NewApiKey, "expires_at" | "ip_addresses"> {
  expires_at: string | null | undefined
  ip_addresses: string[] | undefined
}

/** The keys of a status, or all. A project holds few, so that counting them is cheaper than keeping a total. */
export const ofStatus = (status: KeyStatus | undefined) => ({
  filter: status && STATUS_IS[status](),
})

/** Acts on the next request. Doing it again changes nothing and answers the same. */
export async function revoke(tx: Tx, project_id: string, id: string, by: audit.By = audit.LOCAL) {
  const before = await apiKey.forUpdate(tx, project_id, id)
  if (before.revoked_at) return toResponse(before)
  return change(tx, before, { revoked_at: now() }, by, "revoked")
}

/** As `revoke`. Throws 403 for another key with scopes that the caller lacks. */
export async function revokeAs(tx: Tx, caller: Caller, id: string): Promise<ApiKey> {
  const row = await apiKey.forUpdate(tx, caller.project_id, id)
  if (caller.key_id !== id) requirePower(caller, row)
  return revoke(tx, caller.project_id, id, caller)
}

/** What is absent stays as it is. */
export type ApiKeyPatch = Partial<Pick<ApiKeyRow, "name" | "scopes" | "expires_at">>

/**
 * Scopes only become fewer. Throws 403 for others and for a key with scopes that the caller lacks,
 * 409 `conflict` once the key is revoked, 422 for an end behind the one of the caller's own key.
 */
export async function patch(tx: Tx, caller: Caller, before: ApiKeyRow, wanted: ApiKeyPatch) {
  requireAlive(caller, before)
  if (wanted.expires_at !== undefined) requireOutlives(caller, wanted.expires_at)
  const wider = wanted.scopes?.filter((scope) => !isWithinOwn(before.scopes, [scope])) ?? []
  if (wider.length > 0) {
    const text = `You can only remove scopes from a key. This key does not have ${wider.join(", ")}.`
    fail("forbidden", text, { required_scope: wider[0] })
  }
  return apiKey.update(tx, caller, before, wanted)
}

/**
 * A new key in the place of an old one, which goes on working for the overlap. It lives as long as
 * the old one was meant to, but not longer than the key that asks for it. Throws 409 for a key that
 * works no more or has been rotated, 403 for one that may do more than the caller: the caller gets
 * to know the new one.
 */
export async function rotate(tx: Tx, caller: Caller, id: string, overlap_hours: number) {
  const before = await alive(tx, caller, id)
  requireReach(caller, before.ip_addresses)
  refuseRotated(before)
  const { name, scopes, domain_id, ip_addresses } = before
  const expires_at = earlier(sameLife(before), caller.expires_at)
  const wanted = { name, scopes, domain_id, ip_addresses, expires_at }
  const made = await create(tx, ownedBy(caller), wanted, caller)
  const end = isoFrom(millis() + overlap_hours * HOUR_MILLISECONDS)
  const ending = { expires_at: earlier(before.expires_at, end), successor_id: made.id }
  await change(tx, before, ending, caller, "rotated")
  return made
}

/** Its end is that of the overlap now, so that a second successor would inherit a day's life. */
function refuseRotated({ successor_id }: ApiKeyRow) {
  if (successor_id === null) return
  conflict("rotated", successor_id, "This key was rotated before. Rotate its successor instead.")
}

function sameLife({ created_at, expires_at }: ApiKeyRow): string | null {
  if (expires_at === null) return null
  return isoFrom(millis() + millisFrom(expires_at) - millisFrom(created_at))
}

/** The earlier of two ends; null is never. */
const earlier = (one: string | null, other: string | null): string | null =>
  one === null || (other !== null && other < one) ? other : one

/** Replaces the list; an empty one lets in every address. */
export async function allowlist(tx: Tx, caller: Caller, id: string, ip_addresses: string[]) {
  const before = await alive(tx, caller, id)
  requireReach(caller, ip_addresses)
  return change(tx, before, { ip_addresses }, caller, "allowlist_changed")
}

const alive = async (tx: Tx, caller: Caller, id: string): Promise<ApiKeyRow> =>
  requireAlive(caller, await apiKey.forUpdate(tx, caller.project_id, id))

function requireAlive(caller: Caller, row: ApiKeyRow): ApiKeyRow {
  requirePower(caller, row)
  const { status } = toResponse(row)
  if (status === "active") return row
  return conflict(status, row.id, `This key is ${status}. It cannot be changed.`)
}

const change = async (
  tx: Tx,
  before: ApiKeyRow,
  changes: Partial<ApiKeyRow>,
  by: audit.By,
  verb?: string,
) => toResponse(await apiKey.update(tx, { ...before, ...by }, before, changes, verb))

/**
 * A key is changed by callers that could do everything it does: otherwise a narrow key could lift
 * the allowlist or the end of a broad one.
 */
const requirePower = (caller: Caller, { scopes }: ApiKeyRow) =>
  requireScopes(caller, scopes, "To change this key, you need every scope that it has. Missing")

function requireScopes(caller: Caller, scopes: string[], text: string) {
  if (isWithinOwn(caller.scopes, scopes)) return
  const missing = scopes.filter((scope) => !caller.scopes.includes(scope))
  fail("forbidden", `${text}: ${missing.join(", ")}.`, { required_scope: missing[0] })
}

/** A key with an allowlist makes none that works from other addresses. */
function requireReach({ ip_addresses: own }: Caller, ranges: string[]) {
  if (own.length === 0) return
  const outside = ranges.find((range) => !own.some((wide) => isInside(range, wide)))
  if (ranges.length > 0 && outside === undefined) return
  const text = outside
    ? `${outside} is outside the allowlist of the key that you use.`
    : "The key that you use has an allowlist. The other key needs an allowlist within it."
  fail("forbidden", text, { required_scope: null })
}

/** A key that ends makes none, itself included, that outlives it. */
function requireOutlives({ expires_at: own }: Caller, wished: string | null) {
  if (own === null || (wished !== null && wished <= own)) return
  const message = `The key that you use expires at ${own}. Give that time or an earlier one.`
  throw invalid("expires_at", "invalid", message)
}

/** Remembers the last use; the guard calls it at most once a minute for a key. */
export const touch = (tx: Tx, id: string, ip: string) =>
  tx.update(apiKeys).set({ last_used_at: now(), last_used_ip: ip }).where(eq(apiKeys.id, id))

const STATUS_IS: Record<KeyStatus, () => SQL | undefined> = {
  revoked: () => isNotNull(apiKeys.revoked_at),
  expired: () => and(isNull(apiKeys.revoked_at), lte(apiKeys.expires_at, now())),
  active: () =>
    and(isNull(apiKeys.revoked_at), or(isNull(apiKeys.expires_at), gt(apiKeys.expires_at, now()))),
}

/** How long the record of a key can be read after its end. The audit log tells of it longer. */
const KEPT_SECONDS = 365 * 86_400
const PURGE_LIMIT = 200

/** Forgets up to 200 keys that were revoked, or expired, a year ago. Returns how many. */
export function purgeEndedKeys(store: Store): Promise<number> {
  const { id, revoked_at, expires_at } = apiKeys
  const before = secondsFromNow(-KEPT_SECONDS)
  const is_over = or(lt(revoked_at, before), lt(expires_at, before))
  // An id is made before the key ends, so the walk ends with the keys that are old enough.
  const old = and(lt(id, firstIdAt(millisFrom(before))), is_over)
  return removeSome(store, apiKeys, { id, old, most: PURGE_LIMIT })
}
