import { createHash } from "node:crypto"
import { invalid } from "../core/errors"
import type { MailboxChaos, ProjectSettings } from "../identity/tables"

const NONE: MailboxChaos = { bounce_rate: 0, defer_rate: 0, delay_ms: 0, refuse_rate: 0 }

/** The chaos of a project: nothing goes wrong by itself where it was not asked for. */
export const chaosOf = ({ mailbox_chaos }: Partial<ProjectSettings>): MailboxChaos =>
  mailbox_chaos ?? NONE

/** A whole chaos: absent fields are 0. Null where nothing shall go wrong. Throws 422 for more than all. */
export function wholeChaos(given: Partial<MailboxChaos>): MailboxChaos | null {
  const { bounce_rate = 0, defer_rate = 0, refuse_rate = 0, delay_ms = 0 } = given
  const sum = bounce_rate + defer_rate + refuse_rate
  // Three tenths and seven tenths are a little more than 1 in binary.
  if (sum > 1 + Number.EPSILON) {
    const message = `bounce_rate, defer_rate and refuse_rate are ${sum} together. They may be 1 at most.`
    throw invalid("bounce_rate", "invalid", message)
  }
  return sum + delay_ms === 0 ? null : { bounce_rate, defer_rate, delay_ms, refuse_rate }
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
