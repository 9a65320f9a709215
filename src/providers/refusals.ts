import { monotonic } from "../core/time"
import { engine } from "../store/columns"
import { onChanged } from "../store/group-commit"
import type { Reader } from "../store/store"
import { INSTANCE } from "./callback-token"
import type { ConfigRow } from "./config-record"
import { emailRouting, isUsable } from "./routing"
import { instanceRefusals } from "./tables"

/** A provider refuses our login, and mail waits for it. */
export interface Refusal {
  /** Of its configuration, or INSTANCE. */
  id: string
  name: string
  /** Its own words. */
  reason: string
  /** When it is asked again. */
  next_probe_at: string
  /** The one message that may ask it. */
  probe_message_id: string | null
}

/** What a message that waits for it says of itself. */
export const waitingReason = ({ name, reason }: Refusal): string =>
  `${name} refuses our login: ${reason}. Mail waits until it accepts the login.`

/** How long another node's word may be older than the truth. */
const TRUSTED_MS = 1000

interface Known {
  refusal: Refusal | undefined
  until: number
}

let known = new WeakMap<Reader, Known>()

if (engine === "sqlite") onChanged(["instance_refusals"], forgetRefusal)

/** Forgets what is remembered, because it has just changed. */
export function forgetRefusal(): void {
  known = new WeakMap()
}

/**
 * The refusal of the instance's own provider; undefined while it takes our login. From memory where
 * that cannot be old (SQLite) or where `recent` is good enough, which is a second on Postgres.
 */
export async function instanceRefusal(
  db: Reader,
  { recent = false } = {},
): Promise<Refusal | undefined> {
  const memory = known
  const remembered = memory.get(db)
  const is_good = engine === "sqlite" || (recent && monotonic() < (remembered?.until ?? 0))
  if (remembered && is_good) return remembered.refusal
  const [row] = await db.select().from(instanceRefusals)
  const refusal = row && {
    id: INSTANCE,
    name: row.provider,
    reason: row.reason,
    next_probe_at: row.paused_until,
    probe_message_id: row.probe_message_id,
  }
  memory.set(db, { refusal, until: monotonic() + TRUSTED_MS }) // a change meanwhile replaced `known`
  return refusal
}

/** Why nobody takes the mail of a project now: of several refusals the one that is probed next. */
export async function refusalFor(db: Reader, project_id: string): Promise<Refusal | undefined> {
  const rows = await emailRouting(db, project_id)
  if (rows.length === 0) return instanceRefusal(db)
  return isUsable(rows) ? undefined : refusalOf(rows)
}

/** Of configurations that are all paused. */
export function refusalOf(rows: ConfigRow[]): Refusal | undefined {
  const refusals = rows.flatMap((row): Refusal[] => {
    const { id, provider, name: own, last_error, paused_until, probe_message_id } = row
    if (paused_until === null) return []
    const name = own === provider ? provider : `${provider} (${own})`
    return [{ id, name, reason: last_error ?? "", next_probe_at: paused_until, probe_message_id }]
  })
  return refusals.sort((a, b) => (a.next_probe_at < b.next_probe_at ? -1 : 1))[0]
}
