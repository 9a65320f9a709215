import type { Hold } from "../jobs/holds"
import { queueOfDomain } from "../jobs/pauses"
import { DeferredError, type RetrySchedule } from "../jobs/work"
import { domainOf } from "../lib/address"
import { isOpen, type Message } from "../messages/facts"
import { NO_REPLY, type Outcome, type RecipientOutcome } from "../providers/provider"
import type { EmailProvider } from "./providers/provider"

/** Until recipients whose domain is paused are looked at again, where others were not held up. */
const LOOK_SECONDS = 60

export interface Pauses {
  holdOf(queue: string): Hold | undefined
}

interface Parted {
  to: string[]
  /** Their domain is paused by an operator. */
  held: { email: string; hold: Hold }[]
}

/**
 * Who of the open recipients may be tried, as far as the operator is asked. Throws DeferredError where that
 * is nobody.
 */
export function parted(pauses: Pauses, message: Message): Parted {
  const found: Parted = { to: [], held: [] }
  for (const { email, status } of message.recipients) {
    if (!isOpen(status)) continue
    const hold = pauses.holdOf(queueOfDomain(domainOf(email)))
    if (hold) found.held.push({ email, hold })
    else found.to.push(email)
  }
  const [first] = found.held
  if (found.to.length === 0 && first)
    throw new DeferredError(first.hold.reason, null, first.hold.by)
  return found
}

/**
 * Keeps room for a message with its provider until `dismiss`. Rejects with DeferredError where nobody of it
 * may be tried now: the operator paused their domains, or the provider has no room for them.
 */
export async function admit(pauses: Pauses, provider: EmailProvider, message: Message) {
  const { id, stream, project_id } = message
  await provider.admit?.(id, parted(pauses, message).to, stream === "auth", project_id)
}

/** What came of the attempt, with those who were left out of it: they wait, and nothing is told. */
export function withHeld(outcome: Outcome, held: Parted["held"]): Outcome {
  if (held.length === 0) return outcome
  const left_out = held.map(
    ({ email, hold }): RecipientOutcome => ({
      email,
      status: "retry",
      held: true,
      reason: hold.reason,
      bounce_subtype: null,
      code: null,
      reply: NO_REPLY,
    }),
  )
  const tried = [outcome, ...outcome.others]
  const nobody_else_waits = tried.every(({ status }) => status !== "retry")
  const later: RetrySchedule = () => LOOK_SECONDS
  const schedule = nobody_else_waits ? later : outcome.schedule
  return { ...outcome, others: [...outcome.others, ...left_out], schedule }
}
