import { millis, millisFrom } from "../core/time"
import type { Outcome, RecipientOutcome } from "../providers/provider"
import { EXPIRED } from "./change"
import { AUTH_SOURCE, type Message, wantedSince } from "./status-changes"
import { forOpen } from "./suppressed"

/** Contract 20, section 3: nobody waits longer for a code or a link. */
const RETRIED_SECONDS = 600

/** The outcome with retries that end soon, for codes and links; at most so many seconds apart. */
export function retriedSoon(
  { source }: Message,
  outcome: Outcome,
  most_apart = RETRIED_SECONDS,
): Outcome {
  if (source !== AUTH_SOURCE) return outcome
  const { schedule: usual } = outcome
  return {
    ...outcome,
    schedule(attempt, age) {
      const wait = usual(attempt, age)
      if (wait === undefined || age + Math.min(wait, most_apart) > RETRIED_SECONDS) return undefined
      return Math.min(wait, most_apart)
    },
  }
}

/** How a message ends whose code or link works no more; undefined while it does, and for all others. */
export function expiredLife(message: Message): RecipientOutcome[] | undefined {
  const { lasts_seconds } = message.envelope ?? {}
  if (lasts_seconds === undefined) return undefined
  const age_seconds = (millis() - millisFrom(wantedSince(message))) / 1000
  if (age_seconds < lasts_seconds) return undefined
  return forOpen(message, { status: "failed", code: EXPIRED, reason: EXPIRED, text: TOO_LATE })
}

const TOO_LATE = "Its code or link works no more, so it was not sent."
