import { and, eq, type SQL, sql } from "drizzle-orm"
import { heldProject } from "../jobs/holds"
import { inFlightOf } from "../jobs/in-flight"
import { HELD, LEASED, RESTORE_HOLD, RESTORE_REASON, type WorkColumns } from "../jobs/work-item"
import { isLeased } from "../jobs/work-rows"
import { refusalFor, waitingReason } from "../providers/open-providers"
import { kindOf } from "../providers/provider"
import { isAmong } from "../store/columns"
import type { Reader } from "../store/store"
import { isOpen, type Message, nextAttemptAt } from "./status-changes"
import { messages } from "./tables"

export interface MessageView extends Omit<Message, keyof WorkColumns | "priority"> {
  attempts: number
  next_attempt_at: string | null
}

/**
 * Messages as they stand: one that is claimed is "sending", which its row does not say. One that is
 * held for a provider is tried when the provider is asked again: that is read from the provider, since
 * thousands of rows would have to be written a minute. One that a restored copy holds says so.
 */
export async function asTheyStand(db: Reader, rows: Message[]): Promise<MessageView[]> {
  const waits = new Map<string, Pick<MessageView, "status_reason" | "next_attempt_at">>([
    [RESTORE_HOLD, { status_reason: RESTORE_REASON, next_attempt_at: null }],
  ])
  const held = new Map(rows.flatMap((row) => holdOf(row).map((by) => [by, row.channel] as const)))
  for (const [by, channel] of held) {
    const project_id = heldProject(by)
    const refusal =
      project_id === undefined ? undefined : await refusalFor(db, kindOf(channel), project_id)
    if (!refusal) continue
    waits.set(by, {
      status_reason: waitingReason(refusal),
      next_attempt_at: refusal.next_probe_at,
    })
  }
  return rows.map((row) => ({ ...viewOf(db, row), ...waits.get(holdOf(row)[0] ?? "") }))
}

const holdOf = ({ state, owner }: Message) => (state === HELD && owner !== null ? [owner] : [])

function viewOf(db: Reader, row: Message): MessageView {
  const { state, run_at: _, attempt, owner: __, lease_until: ___, priority: ____, ...view } = row
  const in_memory = inFlightOf(db, "messages")?.isClaimed(row.id) ?? false
  const is_claimed = in_memory || state === LEASED
  return {
    ...view,
    status: is_claimed && isOpen(row.status) ? "sending" : row.status,
    attempts: in_memory ? attempt + 1 : attempt, // the row counts it once it has ended
    next_attempt_at: is_claimed ? null : nextAttemptAt(row),
  }
}

/** Whether a message is claimed, as a condition: at most what the nodes do at once. */
export function isClaimed(db: Reader): SQL {
  const inFlight = inFlightOf(db, "messages")
  return inFlight ? isAmong(db, messages.id, sql`${JSON.stringify(inFlight.ids())}`) : isLeased
}

export function hasStatus(db: Reader, status: Message["status"]): SQL | undefined {
  if (status === "queued") return and(eq(messages.status, "queued"), sql`NOT (${isClaimed(db)})`)
  if (status === "sending") return and(eq(messages.status, "queued"), isClaimed(db))
  return eq(messages.status, status)
}
