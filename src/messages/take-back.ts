import { and, eq, inArray, type SQL, sql } from "drizzle-orm"
import { now } from "../core/time"
import { short } from "../lib/text"
import type { Tx } from "../store/store"
import { announce } from "./facts"
import { messages, type Status } from "./tables"

const OPEN: Status[] = ["queued", "sending"]

interface Put {
  /** Null where nobody knows: an operator's pause. */
  until: string | null | SQL
  /** Without one the message keeps the reason that it had. */
  reason?: string
  /** Those that were made, where one was counted that was not. */
  attempts?: number
}

/** The time at which a message was to be tried, for one that waits and says why. */
export const asItWaited = (run_at: string): SQL =>
  sql`CASE WHEN ${messages.status_reason} IS NOT NULL
    THEN CAST(${sql.param(run_at, messages.next_attempt_at)} AS bigint) END`

/** A message that was taken for an attempt and not tried: it waits again, as if nobody had looked. */
export async function takeBack(tx: Tx, message_id: string, { until, reason, attempts }: Put) {
  const counted = attempts === undefined ? {} : { attempts }
  const change = { next_attempt_at: until, ...counted, updated_at: now() }
  const why = reason === undefined ? {} : { status_reason: short(reason) }
  const waiting = { ...change, status: "queued" as const, ...why }
  const marked = and(eq(messages.id, message_id), inArray(messages.status, OPEN))
  const [message] = await tx.update(messages).set(waiting).where(marked).returning()
  if (message) return announce(tx, message, null)
  // The first recipient is settled, and the status his; only the others wait.
  await tx.update(messages).set(change).where(eq(messages.id, message_id))
}
