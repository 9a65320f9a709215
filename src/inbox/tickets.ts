import { and, eq, gt, lte } from "drizzle-orm"
import { now, secondsFromNow } from "../core/time"
import { hashOfToken, newToken } from "../sign-in/tokens"
import { removeSome } from "../store/rows"
import type { Store, Tx } from "../store/store"
import { inboxTickets } from "./tables"

/** How long a ticket opens a socket. */
export const TICKET_SECONDS = 60

const PURGED_AT_ONCE = 500

/** Whose socket a ticket opens, and until when. */
export interface InboxTicket {
  project_id: string
  subscriber_id: string
  /** Of the end user that is the subscriber. */
  session_id?: string | null
  /** The end of the token that asked for the ticket. */
  token_ends_at: string
}

/** A ticket that opens one socket. Only its SHA-256 is kept. */
export async function issue(tx: Tx, owner: InboxTicket): Promise<string> {
  const ticket = newToken("ticket")
  const row = { id: hashOfToken(ticket), ...owner, expires_at: secondsFromNow(TICKET_SECONDS) }
  await tx.insert(inboxTickets).values(row)
  return ticket
}

/** Uses a ticket up. Undefined for one that is over, was used before, or was never issued. */
export async function redeem(tx: Tx, ticket: string): Promise<InboxTicket | undefined> {
  const { id, project_id, subscriber_id, session_id, token_ends_at, expires_at } = inboxTickets
  const at = now()
  const is_good = and(eq(id, hashOfToken(ticket)), gt(expires_at, at), gt(token_ends_at, at))
  const using = tx.delete(inboxTickets).where(is_good)
  const [used] = await using.returning({ project_id, subscriber_id, session_id, token_ends_at })
  return used
}

/** Forgets some tickets that nobody used in time. Returns how many. */
export function purgeTickets(store: Store): Promise<number> {
  const { id, expires_at } = inboxTickets
  return removeSome(store, inboxTickets, {
    ...{ id, old: lte(expires_at, now()), most: PURGED_AT_ONCE },
  })
}
