import { heldAmong, heldProject } from "../jobs/holds"
import type { Message } from "../messages/facts"
import { refusalFor, waitingReason } from "../providers/refusals"
import type { Reader } from "../store/store"

/** What a message says of its wait. */
type Waiting = Pick<Message, "id" | "status" | "status_reason" | "next_attempt_at">

/**
 * The messages with what they wait for now. One that waits for a provider is tried when the provider is
 * asked again: that is read from the provider, since thousands of rows would have to be written a minute.
 */
export async function asTheyWait<Row extends Waiting>(db: Reader, rows: Row[]): Promise<Row[]> {
  const ids = rows.filter(mayBeHeld).map(({ id }) => id)
  const held = await heldAmong(db, ids)
  const waits = new Map<string, Pick<Row, "status_reason" | "next_attempt_at">>()
  for (const by of new Set(held.values())) {
    const project_id = heldProject(by)
    const refusal = project_id === undefined ? undefined : await refusalFor(db, project_id)
    if (!refusal) continue
    const next_attempt_at = refusal.next_probe_at
    waits.set(by, { status_reason: waitingReason(refusal), next_attempt_at })
  }
  return rows.map((row) => ({ ...row, ...waits.get(held.get(row.id) ?? "") }))
}

/** Nobody knows when it is tried, though it says why it waits. */
export const mayBeHeld = ({ status, status_reason, next_attempt_at }: Omit<Waiting, "id">) =>
  status === "queued" && next_attempt_at === null && status_reason !== null
