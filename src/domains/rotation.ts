import { eq } from "drizzle-orm"
import type * as audit from "../audit-log/audit-log"
import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { millis, now } from "../core/time"
import type { Tx } from "../store/store"
import { enqueueCheck } from "./check-job"
import { hold, log } from "./domains"
import type { KeyRow } from "./expected"
import { ED25519_SUFFIX, keyRows, keysOf, type MadeKey, selectorOf } from "./keys"
import { nextCheck } from "./schedule"
import { dkimKeys, domains } from "./tables"

export interface Rotation {
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
  project_id: string,
  id: string,
  { selector, keys: made, secrets }: Rotation,
  by: audit.By,
) {
  const row = await hold(tx, project_id, id)
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
  const told = { ...after, dkim_selector: wanted }
  await log(tx, by, after, "domain.dkim_rotated", { after: told })
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
