import { createHash } from "node:crypto"

/** Shares of the recipients between 0 and 1, together at most 1. */
export interface MailboxChaos {
  bounce_rate: number
  defer_rate: number
  refuse_rate: number
  /** Before the answer to each mail. */
  delay_ms: number
}

/** What the embedded mailbox does to a recipient on purpose, as its address `bounce@` and so on does. */
export type Mishap = "bounce" | "defer" | "reject"

/**
 * What goes wrong for one recipient of one message. Chosen by a hash of both, so that a repetition meets
 * the same, whichever node it comes to.
 */
export function mishapOf(
  chaos: MailboxChaos,
  message: string,
  address: string,
): Mishap | undefined {
  const { bounce_rate, defer_rate, refuse_rate } = chaos
  if (bounce_rate + defer_rate + refuse_rate === 0) return undefined
  const place = placeOf(message, address)
  if (place < bounce_rate) return "bounce"
  if (place < bounce_rate + defer_rate) return "defer"
  return place < bounce_rate + defer_rate + refuse_rate ? "reject" : undefined
}

/** From 0 to below 1, evenly. */
const placeOf = (message: string, address: string): number =>
  createHash("sha256").update(`${message}\n${address}`).digest().readUInt32BE() / 2 ** 32
