import { eq, inArray } from "drizzle-orm"
import { now, secondsFromNow } from "../core/time"
import type { Tx } from "../store/store"
import type { DomainRow, KeyRow } from "./expected"
import { keysOf } from "./keys"
import { RETIRED_SECONDS } from "./schedule"
import { dkimKeys, type RecordChecks } from "./tables"

/**
 * The key whose record is seen for the first time takes over, at that very moment: until then the
 * old one signs, and from then on its record is only kept for mail on its way.
 */
export async function turnKeys(
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

/** An Ed25519 record is an extra: a signature that nobody can verify is worse than none. */
function isLost({ algorithm, state, selector }: KeyRow, checks: RecordChecks): boolean {
  const status = checks[`dkim:${selector}`]?.status
  const absent = status === "missing" || status === "mismatch" || status === undefined
  return algorithm === "ed25519" && state === "active" && absent
}

/** After a switch the new key's record is the required one, and the old one stands beside it. */
export function renamed(checks: RecordChecks, seen: KeyRow[], keys: KeyRow[]): RecordChecks {
  const active = (list: KeyRow[]) =>
    list.find(({ algorithm, state }) => algorithm === "rsa" && state === "active")?.selector
  const [before, after] = [active(seen), active(keys)]
  if (before === after || before === undefined || after === undefined) return checks
  const { dkim: old, ...rest } = checks
  const fresh = rest[`dkim:${after}`]
  delete rest[`dkim:${after}`]
  return { ...rest, ...(fresh && { dkim: fresh }), ...(old && { [`dkim:${before}`]: old }) }
}
