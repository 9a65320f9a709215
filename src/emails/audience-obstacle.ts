import { millis, millisFrom } from "../core/time"
import { DeferredError } from "../jobs/work-item"
import { decidedAgain, QUIET_HOURS, refusalOf } from "../messages/decided"
import { isOpen, type Message } from "../messages/facts"
import { NO_REPLY, type Outcome, outcomeOf } from "../providers/provider"
import type { Reader } from "../store/store"
import type { EmailProvider } from "./providers/provider"

/** The row of suppressions: the channel asks these itself, and tells which one it is. */
const SUPPRESSED_ROW = 2

/**
 * Why a message that was accepted may not leave now: its subscriber chose otherwise meanwhile, then it
 * fails. Undefined where nothing stands in the way. Rejects with DeferredError in quiet hours. A plain
 * message asks nothing.
 */
export async function audienceObstacle(
  db: Reader,
  message: Message,
  { name, schedule }: Pick<EmailProvider, "name" | "schedule">,
): Promise<Outcome | undefined> {
  const decision = await decidedAgain(db, message)
  if (!decision || decision.row === SUPPRESSED_ROW) return undefined
  const { is_allowed, deferred_until } = decision
  if (deferred_until) {
    throw new DeferredError(QUIET_HOURS, (millisFrom(deferred_until) - millis()) / 1000)
  }
  if (is_allowed) return undefined
  const { reason, text } = refusalOf(decision)
  const open = message.recipients.filter(({ status }) => isOpen(status))
  const outcomes = open.map(({ email }) => ({
    ...{ email, reason, text },
    status: "failed" as const,
    code: reason,
    bounce_subtype: null,
    reply: NO_REPLY,
  }))
  return outcomeOf(outcomes, { provider: name, schedule })
}
