import { invalid } from "../core/errors"
import type { ProjectSettings } from "../identity/tables"
import type { MailboxChaos } from "../lib/mailbox-chaos"

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
