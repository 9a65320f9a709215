import { fail } from "../core/errors"
import { isoFrom, millis, millisFrom, now } from "../core/time"
import type { Tx } from "../store/store"
import * as apiKeys from "./api-keys"
import type { Caller } from "./caller"
import { earlier, mayChange, mayOutlive, mayReach } from "./granting"

const HOUR_MILLISECONDS = 3_600_000

/** What is absent stays as it is. */
export interface WantedChange {
  name?: string
  scopes?: string[]
  expires_at?: string | null
}

/**
 * Scopes only become fewer. Throws 403 for others and for a key with scopes that the caller lacks, 409 `conflict` once the key is revoked, 422 for
 * an end behind the one of the caller's own key.
 */
export async function patch(tx: Tx, caller: Caller, id: string, wanted: WantedChange) {
  const before = await alive(tx, caller, id)
  if (wanted.expires_at !== undefined) mayOutlive(caller, wanted.expires_at)
  if (wanted.scopes) {
    const wider = wanted.scopes.filter((scope) => !covers(before.scopes, scope))
    if (wider.length > 0) {
      const text = `You can only remove scopes from a key. This key does not have ${wider.join(", ")}.`
      fail("forbidden", text, { required_scope: wider[0] })
    }
  }
  return apiKeys.change(tx, before, wanted, "api_key.updated", caller)
}

const covers = (own: string[], scope: string) => own.includes("*") || own.includes(scope)

/**
 * A new key in the place of an old one, which goes on working for the overlap. It lives as long as
 * the old one was meant to, but not longer than the key that asks for it. Throws 409 for a key that
 * works no more or has been rotated, 403 for one that may do more than the caller: the caller gets
 * to know the new one.
 */
export async function rotate(tx: Tx, caller: Caller, id: string, overlap_hours: number) {
  const before = await alive(tx, caller, id)
  mayReach(caller, before.ip_addresses)
  refuseRotated(before)
  const { name, scopes, domain_id, ip_addresses } = before
  const owner = {
    account_id: before.account_id,
    project_id: before.project_id,
    created_by: { type: caller.actor.type, id: caller.actor.id },
  }
  const wanted = {
    name,
    scopes,
    domain_id,
    ip_addresses,
    expires_at: earlier(sameLife(before), caller.expires_at),
  }
  const made = await apiKeys.create(tx, owner, wanted, caller)
  const end = isoFrom(millis() + overlap_hours * HOUR_MILLISECONDS)
  const change = { expires_at: earlier(before.expires_at, end), successor_id: made.id }
  await apiKeys.change(tx, before, change, "api_key.rotated", caller)
  return made
}

/** Its end is that of the overlap now, so that a second successor would inherit a day's life. */
function refuseRotated({ successor_id }: apiKeys.Row) {
  if (successor_id === null) return
  const details = { reason: "rotated", id: successor_id }
  fail("conflict", "This key was rotated before. Rotate its successor instead.", details)
}

function sameLife({ created_at, expires_at }: apiKeys.Row): string | null {
  if (expires_at === null) return null
  return isoFrom(millis() + millisFrom(expires_at) - millisFrom(created_at))
}

/** Replaces the list; an empty one lets in every address. */
export async function allowlist(tx: Tx, caller: Caller, id: string, ip_addresses: string[]) {
  const before = await alive(tx, caller, id)
  mayReach(caller, ip_addresses)
  return apiKeys.change(tx, before, { ip_addresses }, "api_key.allowlist_changed", caller)
}

/**
 * Acts on the next request. Doing it again changes nothing and answers the same. Throws 403 for
 * another key with scopes that the caller lacks: a key may always revoke itself.
 */
export async function revoke(tx: Tx, caller: Caller, id: string): Promise<apiKeys.ApiKey> {
  const row = await apiKeys.hold(tx, caller.project_id, id)
  if (caller.key_id !== id) mayChange(caller, row)
  return apiKeys.revoke(tx, caller.project_id, id, caller)
}

async function alive(tx: Tx, caller: Caller, id: string): Promise<apiKeys.Row> {
  const row = await apiKeys.hold(tx, caller.project_id, id)
  mayChange(caller, row)
  const expired = row.expires_at !== null && row.expires_at <= now()
  const reason = row.revoked_at ? "revoked" : expired ? "expired" : undefined
  if (reason) fail("conflict", `This key is ${reason}. It cannot be changed.`, { reason, id })
  return row
}
