import { ApiError, fail } from "../core/errors"
import { type Caller, codeOfSilence, projectCaller } from "../identity/caller"
import { accept, allowanceOf, type MessageEntry, storedShareOf } from "../messages/accept"
import type { NewMessage } from "../messages/tables"
import type { Reader, Tx } from "../store/store"
import type { AuthEnvironment } from "./environments"

/** A message that is ready; its transaction may run twice. */
export interface ReadyMessage {
  message_id: string
  /** Throws 402, 403 as a send does. Resolves with the id of the message. */
  accept(tx: Tx): Promise<string>
}

/** The project as a sender. What environment `test` sends never leaves the server, and counts in no quota. */
export async function senderCaller(
  db: Reader,
  { project_id, name }: AuthEnvironment,
): Promise<Caller> {
  const caller = await projectCaller(db, project_id)
  if (!caller) return fail(await codeOfSilence(db, project_id), "The account sends nothing now.")
  const { project_settings } = caller
  if (name !== "test") return caller
  return { ...caller, project_settings: { ...project_settings, sandbox: true } }
}

/** Neither the sends of a second nor the throttling of an account count for it. */
export function readyMessage(caller: Caller, message: NewMessage): ReadyMessage {
  const quota = { ...allowanceOf(caller, message.channel), sends_per_second: null }
  const entry: MessageEntry = {
    message,
    restricted: caller.sending_status === "active" ? undefined : caller,
    allowance: message.sandbox ? null : quota,
    share: storedShareOf(caller, message.project_id),
  }
  return { message_id: message.id, accept: (tx) => acceptOne(tx, entry) }
}

async function acceptOne(tx: Tx, entry: MessageEntry): Promise<string> {
  const [answer] = await accept(tx, [entry])
  if (!answer || answer instanceof ApiError) throw answer ?? new Error("no message was accepted")
  return answer.id
}
