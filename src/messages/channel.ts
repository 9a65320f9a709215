import type { messages } from "./tables"

/** Seconds until the next attempt, or `undefined` to give up. Attempts count from 1. */
export type Schedule = (attempt: number, age_seconds: number) => number | undefined

/** What the other side said, as far as it said anything. Codes of RFC 5321 and RFC 3463. */
export interface Reply {
  smtp_code: number | null
  enhanced_code: string | null
  response: string | null
  mx: string | null
  tls: string | null
}

export interface RecipientOutcome {
  email: string
  status: "sent" | "delivered" | "retry" | "bounced" | "failed"
  reason: string | null
  bounce_subtype: string | null
  /** An error code of the contract, for `failed`. */
  code: string | null
  reply: Reply
}

/**
 * What came of one attempt. Neither channel nor provider throws for a refusal: it says so here.
 * The fields of `RecipientOutcome` speak of the `to` recipient or, once that one is settled, of
 * the first recipient still open; `others` holds the rest.
 */
export interface Outcome extends RecipientOutcome {
  provider: string
  others: RecipientOutcome[]
  transcript: string[]
  schedule: Schedule
}

/** All the pipeline knows about a channel. Which provider it asks is its own affair. */
export interface Channel {
  deliver(message: typeof messages.$inferSelect, content: unknown): Promise<Outcome>
}
