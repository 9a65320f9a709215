import { millis, millisFrom } from "../core/time"
import type { Outcome, RecipientOutcome } from "../providers/provider"
import { EXPIRED } from "./change"
import { AUTH_SOURCE, type Message, wantedSince } from "./status-changes"
import { forOpen } from "./suppressed"

/** Contract 20, section 3: nobody waits longer for a code or a link. */
const RETRIED_SECONDS = 600

/**
 * The outcome of a message. Where the message brings a code or a link, retries end soon, they are at most `most_apart`
 * seconds apart, and an answer that quotes the message has the code and the link masked.
 */
export function signInOutcome(
  { source }: Message,
  outcome: Outcome,
  most_apart = RETRIED_SECONDS,
): Outcome {
  if (source !== AUTH_SOURCE) return outcome
  const { schedule: usual, others, transcript } = outcome
  return {
    ...outcome,
    ...masked(outcome),
    others: others.map((other) => ({ ...other, ...masked(other) })),
    transcript: transcript.map(hidden),
    schedule(attempt, age) {
      const wait = usual(attempt, age)
      if (wait === undefined || age + Math.min(wait, most_apart) > RETRIED_SECONDS) return undefined
      return Math.min(wait, most_apart)
    },
  }
}

/** What a provider says in its own words. */
const masked = ({ reason, reply, text }: RecipientOutcome) => ({
  reason: reason && hidden(reason),
  reply: { ...reply, response: reply.response && hidden(reply.response) },
  ...(text !== undefined && { text: hidden(text) }),
})

const hidden = (text: string): string => text.replaceAll(CODE_OR_TOKEN, "••••")

const CODE_OR_TOKEN = /belfry_[a-z]+_[\w-]+|\b\d{6}\b/g

/** How a message ends whose code or link works no more; undefined while it does, and for all others. */
export function expiredLife(message: Message): RecipientOutcome[] | undefined {
  const { lasts_seconds } = message.envelope ?? {}
  if (lasts_seconds === undefined) return undefined
  const age_seconds = (millis() - millisFrom(wantedSince(message))) / 1000
  if (age_seconds < lasts_seconds) return undefined
  return forOpen(message, { status: "failed", code: EXPIRED, reason: EXPIRED, text: TOO_LATE })
}

const TOO_LATE = "Its code or link works no more, so it was not sent."
