import { newId } from "../core/ids"
import { now } from "../core/time"
import { bump } from "../store/counters"
import { inserter } from "../store/statements"
import type { Tx } from "../store/store"
import { type Actor, auditLog } from "./tables"

export const COUNTER = "audit_log"

/** Who is behind a change, and at which address; a caller of the API serves as one. */
export interface By {
  actor: Actor
  ip: string | null
}

/** Somebody who sits at the machine itself. */
export const LOCAL: By = { actor: { type: "local", id: null, name: null }, ip: null }

export const SYSTEM: By = { actor: { type: "system", id: null, name: null }, ip: null }

export interface NewEntry extends By {
  account_id: string
  project_id?: string | null
  /** `noun.verb`, as `member.removed`. */
  action: string
  target: { type: string; id: string | null }
  before?: unknown
  after?: unknown
}

/**
 * Writes down a change, in the transaction that makes it. Whatever a field's name tells to be a
 * secret is left out, so that a whole row may be handed in.
 */
export async function record(tx: Tx, entry: NewEntry): Promise<void> {
  const { actor, target, before, after, ...rest } = entry
  const row = {
    id: newId(),
    project_id: null,
    ...rest,
    actor,
    actor_id: actor.id,
    target_type: target.type,
    target_id: target.id,
    before: before === undefined ? null : withoutSecrets(before),
    after: after === undefined ? null : withoutSecrets(after),
    created_at: now(),
  }
  await insertEntries(tx, [row])
  await bump(tx, entry.account_id, COUNTER, 1)
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
