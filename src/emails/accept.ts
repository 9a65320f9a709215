import * as messages from "../messages/pipeline"
import type { Tx } from "../store/store"

/**
 * The last word before the shared door, inside the transaction: what may have changed since
 * `prepare` is asked again here. Takes many, because entrances are coalesced.
 */
export const accept = (tx: Tx, list: messages.NewMessage[]): Promise<messages.Message[]> =>
  messages.accept(tx, list)

/** The reply to a send, and what a repetition of the request is answered. */
export function reply({ id, rfc_message_id, recipients, created_at }: Replied) {
  const [to] = recipients
  const data = {
    id,
    status: "queued",
    rfc_message_id,
    to: { email: to?.email ?? "", name: to?.name ?? null },
    scheduled_at: null,
    created_at,
  }
  return { top: { id }, data }
}

type Replied = Pick<messages.NewMessage, "id" | "rfc_message_id" | "recipients" | "created_at">
