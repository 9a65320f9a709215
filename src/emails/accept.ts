import { keepLinks } from "../consents/unsubscribe-links"
import { ApiError } from "../core/errors"
import { unavailable } from "../http/envelope"
import * as idempotency from "../http/idempotency"
import type { Caller } from "../identity/caller"
import { type AcceptMode, admit, countUsage, type MessageEntry } from "../messages/admission"
import { asksAudience, decided } from "../messages/decided"
import * as messages from "../messages/pipeline"
import { frozenRefusal } from "../reputation/gate"
import { Batcher } from "../store/batcher"
import type { Reader, Store, Tx } from "../store/store"
import { demandRoomFor } from "../tenancy/quotas"
import { linksIn } from "./email-category"

/** What is sent from the sandbox is no use of the service, and counts nothing. */
export const entryOf = (message: messages.NewMessage, caller: Caller): MessageEntry => ({
  message,
  asking: asksAudience(message) ? caller.project_settings : undefined,
  standing: caller.sending_status === "active" ? undefined : caller,
  allowance: message.sandbox ? null : allowanceOf(caller),
  share: storedShareOf(caller, message.project_id),
})

/** What the project may store, also in the sandbox: its mail takes as much. */
export const storedShareOf = ({ account_id, plan, limits }: Caller, project_id: string) => ({
  ...{ account_id, project_id, plan, limit_mb: limits.stored_mb },
})

/** The quota of the month that emails of this caller count under. */
export const allowanceOf = ({ account_id, quota_subject, limits, plan }: Caller) => ({
  account_id,
  subject: quota_subject,
  metric: "email" as const,
  limit: limits.emails_per_month,
  sends_per_second: limits.sends_per_second,
  plan,
})

export const isFrozen = ({ sending_status }: Caller): boolean => sending_status === "frozen"

/**
 * Refuses the sends of a frozen account, before anything is looked up or put on disk. Throws 402 if the
 * quota of the month is used up, else 403 `account_frozen`.
 */
export async function refuseFrozen(db: Reader, caller: Caller, units: number): Promise<void> {
  const refusal = frozenRefusal(caller)
  if (!refusal) return
  if (!caller.project_settings.sandbox) await demandRoomFor(db, allowanceOf(caller), units)
  throw refusal
}

/**
 * The last checks inside the transaction, for what may have changed since `prepare`. Takes many
 * emails, because sends are batched. Answers for each with the message, or with why it is refused:
 * what the project may store (403), the month's quota (402), the account's sending status (403, 429), then the sends of a second (429).
 * A message whose recipient may not get it is accepted, and ends at once.
 */
export async function accept(
  tx: Tx,
  list: MessageEntry[],
  mode: AcceptMode = "apart",
): Promise<(messages.Message | ApiError)[]> {
  const refused = await admit(tx, list, mode)
  const admitted = list.filter((entry) => !refused.has(entry))
  const entering = admitted.some(({ asking }) => asking)
    ? await decided(tx, admitted)
    : admitted.map(({ message }) => message)
  const links = linksIn(entering)
  if (links.length > 0) await keepLinks(tx, links)
  const accepted = await messages.accept(tx, entering)
  await countUsage(tx, admitted)
  const byId = new Map<string, messages.Message>()
  for (const message of accepted) byId.set(message.id, message)
  return list.map((entry) => {
    const answer = refused.get(entry) ?? byId.get(entry.message.id)
    if (!answer) throw new Error("a message was neither accepted nor refused")
    return answer
  })
}

/** The reply to a send that repeats an earlier one: it names all recipients. */
export function resentReply(message: Replied) {
  const { top, data } = reply(message)
  const recipients = message.recipients.map(({ email, kind }) => ({ email, kind }))
  return { top, data: { ...data, recipients } }
}

/** The reply to a send, and what a repetition of the request is answered. */
export function reply({ id, rfc_message_id, recipients, scheduled_at, created_at }: Replied) {
  const [to] = recipients
  const data = {
    id,
    status: "queued" as const,
    rfc_message_id: rfc_message_id as string,
    to: { email: to?.email ?? "", name: to?.name ?? null },
    scheduled_at: scheduled_at ?? null,
    created_at,
  }
  return { top: { id }, data }
}

type Replied = Pick<
  messages.NewMessage,
  "id" | "rfc_message_id" | "recipients" | "scheduled_at" | "created_at"
>

const MOST_IN_BATCH = 200
const MOST_WAITING = 5000

interface WaitingSend {
  entry: MessageEntry
  /** What a repetition of the request is answered. */
  answer: (message: Replied) => object
  claim: idempotency.Claim | undefined
  signal: AbortSignal
}

type Submission = Pick<WaitingSend, "claim" | "signal">

const TOO_MANY = "Too many requests wait for the storage. This one was not accepted; send it again."

/**
 * Single sends that arrive together enter together: one transaction, a few statements for all of
 * them. On Postgres that is the difference between a thousand and several thousand a second.
 */
export class Intake {
  readonly #batcher: Batcher<WaitingSend, Error | messages.Message>

  constructor(store: Store) {
    this.#batcher = new Batcher({ store, most: MOST_IN_BATCH, write: enter })
  }

  /**
   * Resolves when the message is on disk, with the message as it was accepted: quiet hours may have moved
   * its time. Rejects with `AlreadyAnswered` for a taken claim, with
   * 402 `payment_required` when the quota of the month is used up, with 503 when too many wait
   * already, and when the signal was aborted before that: a caller that was told 504 must not find the
   * message sent.
   */
  async submit(
    entry: MessageEntry,
    { claim, signal }: Submission,
    answer: (message: Replied) => object = reply,
  ): Promise<messages.Message> {
    if (this.#batcher.waiting >= MOST_WAITING) throw unavailable(TOO_MANY, "busy", 1)
    const accepted = await this.#batcher.add({ entry, answer, claim, signal })
    if (accepted instanceof Error) throw accepted
    return accepted
  }
}

/** The message of each, or why it is refused: it was given up, answered before, or is over the quota. */
async function enter(tx: Tx, batch: WaitingSend[]): Promise<(Error | messages.Message)[]> {
  const refusals = new Map<WaitingSend, Error>()
  for (const one of batch) if (one.signal.aborted) refusals.set(one, one.signal.reason)
  const wanted = batch.filter((one) => !refusals.has(one))
  const claims = wanted.flatMap(({ answer, claim, entry: { message } }) =>
    claim ? [{ claim, stored: { status: 201, answer: JSON.stringify(answer(message)) } }] : [],
  )
  const fresh = await idempotency.take(tx, claims)
  for (const one of wanted) {
    const { claim } = one
    // Each new request is given away once, so that two claims of one batch cannot both have it.
    if (claim && !fresh.delete(claim.request)) {
      refusals.set(one, new idempotency.AlreadyAnswered(claim))
    }
  }
  const admitted = wanted.filter((one) => !refusals.has(one))
  const answers = await accept(
    tx,
    admitted.map(({ entry }) => entry),
  )
  const results = new Map<WaitingSend, Error | messages.Message>(refusals)
  for (const [at, one] of admitted.entries()) {
    const answer = answers[at]
    if (!answer) continue
    results.set(one, answer)
    if (!one.claim) continue
    if (answer instanceof ApiError) await idempotency.giveUp(tx, one.claim)
    else if (wasMoved(one.entry, answer)) {
      await idempotency.amend(tx, one.claim, one.answer(answer))
    }
  }
  return batch.map(
    (one) => results.get(one) ?? new Error("a send was neither accepted nor refused"),
  )
}

const wasMoved = ({ message }: MessageEntry, { scheduled_at }: messages.Message): boolean =>
  (message.scheduled_at ?? null) !== scheduled_at
