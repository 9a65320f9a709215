import { eq } from "drizzle-orm"
import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { now, today } from "../core/time"
import { refuse } from "../identity/authenticate"
import type { Caller } from "../identity/caller"
import { acknowledge } from "../messages/settle"
import { isOpen, type Message } from "../messages/status-changes"
import { messages } from "../messages/tables"
import { rowForUpdate } from "../store/rows"
import { adder, newRowInserter } from "../store/statements"
import type { Store, Tx } from "../store/store"
import { find } from "../subscribers/find-subscriber"
import { isAckToken } from "./ack-token"
import { type Ack, pushAcks, pushDays } from "./tables"

interface AckParts {
  store: Store
  secrets: Pick<Secrets, "mac">
}

export interface AckInput {
  event: Ack
  ack_token?: string
}

/**
 * Notes what a device tells of its push message. Resolves to whether that was news. Throws 401 where nothing proves
 * it, whether the message exists or not, and 404 to a subscriber or an end user for what is not on a device of theirs.
 */
export async function noteAck(
  { store, secrets }: AckParts,
  caller: Caller,
  push_id: string,
  { event, ack_token }: AckInput,
): Promise<boolean> {
  const is_proven = ack_token !== undefined && isAckToken(secrets, push_id, ack_token)
  const is_person = caller.kind === "subscriber" || caller.kind === "user"
  if (!is_proven && (ack_token !== undefined || !is_person)) refuse()
  return store.tx(async (tx) => {
    const message = await rowForUpdate(tx, messages, push_id, eq(messages.channel, "push"))
    if (!message || !(is_proven || (await isOf(tx, message, caller)))) return gone()
    const { id: message_id, project_id, status, envelope } = message
    const fresh = await insertAcks(tx, [{ message_id, event, project_id, created_at: now() }])
    if (fresh.size === 0) return false
    await countAcks(tx, [{ project_id, day: today(), fact: event, messages: 1 }])
    // Of a message that is open only the token tells that it left.
    const is_there = event !== "dismissed" && (is_proven || !isOpen(status))
    if (is_there) await acknowledge(tx, message_id, envelope?.push?.provider ?? "")
    return true
  })
}

const gone = () => fail("not_found", "There is no such push message.")

async function isOf(tx: Tx, { project_id, user_id }: Message, caller: Caller): Promise<boolean> {
  if (user_id === null || project_id !== caller.project_id) return false
  if (caller.end_user) return caller.end_user.id === user_id
  const { external_id } = await find(tx, project_id, caller.subscriber_id ?? "")
  return external_id === user_id
}

const insertAcks = newRowInserter(pushAcks, "message_id")

/** On Postgres, where several nodes write at once. */
const SHARDS = 8

const countAcks = adder(pushDays, ["project_id", "day", "fact"], ["messages"], SHARDS)
