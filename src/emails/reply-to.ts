import { type Mailbox, parseMailbox } from "../lib/address"
import type { Envelope } from "../messages/tables"

/** The mailboxes that answers go to, in whichever form the message was kept. */
export function repliesOf(envelope: Pick<Envelope, "reply_to"> | null): Mailbox[] {
  const kept = envelope?.reply_to ?? []
  return typeof kept === "string" ? [parseMailbox(kept) ?? { email: kept, name: null }] : kept
}
