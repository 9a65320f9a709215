import { type Mailbox, parseMailbox } from "../lib/address"
import type { Envelope } from "../messages/tables"

/** To whom answers go, whichever form the message was kept in. */
export function repliesOf(envelope: Pick<Envelope, "reply_to"> | null): Mailbox[] {
  const kept = envelope?.reply_to ?? []
  return typeof kept === "string" ? [parseMailbox(kept) ?? { email: kept, name: null }] : kept
}
