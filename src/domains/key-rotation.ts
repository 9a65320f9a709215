import { eq, inArray } from "drizzle-orm"
import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { millis, now, secondsFromNow } from "../core/time"
import type { ProjectActor } from "../identity/noun"
import type { Tx } from "../store/store"
import { enqueueCheck, nextCheck, RETIRED_SECONDS } from "./check-schedule"
import { forUpdate, log } from "./domains"
import type { DomainRow, KeyRow } from "./expected-records"
import { ED25519_SUFFIX, keyRows, keysOf, type MadeKey, selectorOf } from "./keys"
import { dkimKeys, domains, type RecordChecks } from "./tables"

interface Rotation {
  /** Undefined for the next one. */
  selector: string | undefined
  /** One of each algorithm that is published. */
  keys: MadeKey[]
  secrets: Secrets
}

/**
 * Puts a new key next to the one that signs, which goes on signing until the new record is seen.
 * Throws 409 `conflict` while another rotation runs, or for a selector that is in use.
 */
export async function rotate(
  tx: Tx,
  by: ProjectActor,
  id: string,
  { selector, keys: made, secrets }: Rotation,
) {
  const { project_id } = by
  const row = await forUpdate(tx, project_id, id)
  const keys = await keysOf(tx, id)
  const rsa = keys.filter(({ algorithm }) => algorithm === "rsa")
  const waiting = rsa.find(({ state }) => state === "pending")
  if (waiting) {
    const message = `A rotation is running: the record of ${waiting.selector} is not seen yet. Add that record first.`
    fail("conflict", message, { reason: "rotation_running", id: waiting.id })
  }
  const wanted = selector ?? freeSelector(keys, made)
  const owner = { project_id, domain_id: id }
  const fresh = keyRows(secrets, owner, made, { selector: wanted, state: "pending" })
  const taken = fresh.find(({ selector }) => keys.some((key) => key.selector === selector))
  if (taken) {
    fail("conflict", `The selector ${taken.selector} is in use. Give another one.`, {
      reason: "selector_taken",
    })
  }
  await tx.insert(dkimKeys).values(fresh)
  const all = [...keys, ...fresh]
  const next_check_at = nextCheck(row, all, millis())
  const changes = { next_check_at, updated_at: now() }
  await tx.update(domains).set(changes).where(eq(domains.id, id))
  const after = { ...row, ...changes }
  if (next_check_at !== row.next_check_at) await enqueueCheck(tx, after)
  const { records: _, ...changed } = { ...after, dkim_selector: wanted }
  await log(tx, by, after, "dkim_rotated", { after: changed })
  return { row: after, keys: all }
}

/** `svc1`, `svc2`, `svc1` …: one that no record of the last days has. */
function freeSelector(keys: KeyRow[], made: MadeKey[]): string {
  for (let number = 1; ; number++) {
    const name = `svc${number}`
    const names = made.map(({ algorithm }) => selectorOf(algorithm, name))
    if (!keys.some((key) => names.includes(key.selector))) return name
  }
}

/** What a selector of the caller's may look like: room is left for its companion. */
export const isSelector = (text: string) =>
  text.length + ED25519_SUFFIX.length <= 63 && /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/.test(text)

/**
 * The key whose record is seen for the first time takes over, at that very moment: until then the
 * old one signs, and from then on its record is only kept for mail on its way.
 */
export async function activateSeenKeys(
  tx: Tx,
  { id }: DomainRow,
  seen: KeyRow[],
  checks: RecordChecks,
): Promise<KeyRow[]> {
  const keys = await keysOf(tx, id)
  const isSeen = ({ selector, id: key_id }: KeyRow) =>
    seen.some((key) => key.id === key_id) && checks[`dkim:${selector}`]?.status === "verified"
  const changes = new Map<string, Partial<KeyRow>>()
  for (const algorithm of ["rsa", "ed25519"]) {
    const ours = keys.filter((key) => key.algorithm === algorithm && key.state !== "retired")
    const newest = ours.findLast((key) => key.state === "pending" && isSeen(key))
    if (!newest) continue
    const retire_at = secondsFromNow(RETIRED_SECONDS)
    const older = ours.filter(({ id: key_id }) => key_id < newest.id)
    for (const one of older) changes.set(one.id, { state: "retired", retire_at })
    changes.set(newest.id, { state: "active", seen_at: now() })
  }
  for (const key of keys.filter((one) => isLost(one, checks))) {
    if (!changes.has(key.id)) changes.set(key.id, { state: "pending" })
  }
  for (const [key_id, change] of changes) {
    await tx.update(dkimKeys).set(change).where(eq(dkimKeys.id, key_id))
  }
  const over = keys.filter(({ retire_at }) => retire_at !== null && retire_at <= now())
  const ids = over.map((key) => key.id)
  if (ids.length > 0) await tx.delete(dkimKeys).where(inArray(dkimKeys.id, ids))
  return keys
    .filter((key) => !ids.includes(key.id))
    .map((key) => ({ ...key, ...changes.get(key.id) }))
}

/** Ed25519 is optional. Without its record no receiver could verify the signature, so we stop signing. */
function isLost({ algorithm, state, selector }: KeyRow, checks: RecordChecks): boolean {
  const status = checks[`dkim:${selector}`]?.status
  const absent = status === "missing" || status === "mismatch" || status === undefined
  return algorithm === "ed25519" && state === "active" && absent
}

/** After a switch the new key's record is the required one, and the old one stands beside it. */
export function movePrimaryDkim(
  checks: RecordChecks,
  seen: KeyRow[],
  keys: KeyRow[],
): RecordChecks {
  const active = (list: KeyRow[]) =>
    list.find(({ algorithm, state }) => algorithm === "rsa" && state === "active")?.selector
  const [before, after] = [active(seen), active(keys)]
  if (before === after || before === undefined || after === undefined) return checks
  const { dkim: old, ...rest } = checks
  const fresh = rest[`dkim:${after}`]
  delete rest[`dkim:${after}`]
  return { ...rest, ...(fresh && { dkim: fresh }), ...(old && { [`dkim:${before}`]: old }) }
}
