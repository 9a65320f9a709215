import {
  keepLinks,
  type NewUnsubscribeLink,
  type UnsubscribeScope,
} from "../consents/unsubscribe-links"
import { ApiError } from "../core/errors"
import { unavailable } from "../http/envelope"
import * as idempotency from "../http/idempotency"
import type { Caller } from "../identity/caller"
import { LIMIT_OF } from "../plans/plans"
import { frozenRefusal } from "../reputation/gate"
import { Batcher } from "../store/batcher"
import type { Reader, Store, Tx } from "../store/store"
import { requireRoomFor } from "../tenancy/quotas"
import { type AcceptMode, admit, countUsage, type MessageEntry } from "./admission"
import { decided } from "./decided"
import * as messages from "./pipeline"
import { asksAudience } from "./send-fields"
import { isOneSend } from "./status-changes"
import type { ChannelName, Envelope, NewMessage } from "./tables"

export type { MessageEntry } from "./admission"

/** What is sent from the sandbox is no use of the service, and counts nothing. */
export const entryOf = (message: NewMessage, caller: Caller): MessageEntry => ({
  message,
  asking: asksAudience(message) ? caller.project_settings : undefined,
  send: isOneSend(message.channel) ? (message.batch_id ?? undefined) : undefined,
  restricted: caller.sending_status === "active" ? undefined : caller,
  allowance: message.sandbox ? null : allowanceOf(caller, message.channel),
  share: storedShareOf(caller, message.project_id),
})

/** What the project may store, also in the sandbox: its mail takes as much. */
export const storedShareOf = ({ account_id, plan, limits }: Caller, project_id: string) => ({
  ...{ account_id, project_id, plan, limit_mb: limits.stored_mb },
})

export const allowanceOf = (
  { account_id, quota_subject, limits, plan }: Caller,
  channel: ChannelName,
) => ({
  account_id,
  subject: quota_subject,
  metric: channel,
  limit: limits[LIMIT_OF[channel]],
  sends_per_second: limits.sends_per_second,
  plan,
})

/** A frozen account: throws 402 if the quota of the month is used up, else 403 `account_frozen`. */
export function refuseFrozen(
  db: Reader,
  caller: Caller,
  channel: ChannelName,
  units: number,
): Promise<void> | undefined {
  const refusal = frozenRefusal(caller)
  return refusal && refuseWith(db, refusal, caller, { channel, units })
}

async function refuseWith(
  db: Reader,
  refusal: ApiError,
  caller: Caller,
  { channel, units }: { channel: ChannelName; units: number },
): Promise<void> {
  if (!caller.project_settings.sandbox)
    await requireRoomFor(db, allowanceOf(caller, channel), units)
  throw refusal
}

/**
 * The last checks inside the transaction, for what may have changed since `prepare`. Takes many
 * emails, because sends are batched. Answers for each with the message, or with why it is refused:
 * the same reasons as `admit`. A message whose recipient may not get it is accepted, and ends at once.
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

const MOST_IN_BATCH = 200
const MOST_WAITING = 5000

export type AcceptedMessage = Pick<
  NewMessage,
  "id" | "rfc_message_id" | "recipients" | "scheduled_at" | "created_at"
> &
  Partial<Pick<messages.Message, "status">>

interface WaitingSend {
  entry: MessageEntry
  /** What a repetition of the request is answered. */
  answer: (message: AcceptedMessage) => object
  claim: idempotency.Claim | undefined
  signal: AbortSignal
}

const TOO_MANY = "Too many requests wait for the storage. This one was not accepted; send it again."

/**
 * Single sends that arrive together enter together: one transaction, a few statements for all of
 * them. On Postgres that is the difference between a thousand and several thousand a second.
 */
export class SendBatcher {
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
    { claim, signal }: Pick<WaitingSend, "claim" | "signal">,
    answer: (message: AcceptedMessage) => object,
  ): Promise<messages.Message> {
    if (this.#batcher.waiting >= MOST_WAITING) throw unavailable(TOO_MANY, "busy", 1)
    const accepted = await this.#batcher.add({ entry, answer, claim, signal })
    if (accepted instanceof Error) throw accepted
    return accepted
  }
}

/** The message of each, or why it is refused: it was given up, answered before, or is over the quota. */
async function enter(tx: Tx, batch: WaitingSend[]): Promise<(Error | messages.Message)[]> {
  const results = new Map<WaitingSend, Error | messages.Message>()
  for (const one of batch) if (one.signal.aborted) results.set(one, one.signal.reason)
  const wanted = batch.filter((one) => !results.has(one))
  const claims = wanted.flatMap(({ answer, claim, entry: { message } }) =>
    claim ? [{ claim, stored: { status: 201, answer: JSON.stringify(answer(message)) } }] : [],
  )
  const fresh = claims.length > 0 ? await idempotency.take(tx, claims) : new Set<string>()
  for (const one of wanted) {
    const { claim } = one
    // Each new request is given away once, so that two claims of one batch cannot both have it.
    if (claim && !fresh.delete(claim.request)) {
      results.set(one, new idempotency.AlreadyAnswered(claim))
    }
  }
  const admitted = wanted.filter((one) => !results.has(one))
  const answers = await accept(
    tx,
    admitted.map(({ entry }) => entry),
  )
  for (const [at, one] of admitted.entries()) {
    const answer = answers[at]
    if (!answer) continue
    results.set(one, answer)
    if (!one.claim) continue
    if (answer instanceof ApiError) await idempotency.giveUp(tx, one.claim)
    else if (wasChanged(one.entry, answer)) {
      await idempotency.amend(tx, one.claim, one.answer(answer))
    }
  }
  return batch.map(
    (one) => results.get(one) ?? new Error("a send was neither accepted nor refused"),
  )
}

const wasChanged = ({ message }: MessageEntry, { scheduled_at, status }: messages.Message) =>
  (message.scheduled_at ?? null) !== scheduled_at || status === "failed"

const linksIn = (list: NewMessage[]): NewUnsubscribeLink[] =>
  list.flatMap(({ project_id, address, envelope }) => {
    const { unsubscribe: token } = envelope ?? {}
    const scope = scopeIn(envelope)
    return token === undefined || !scope ? [] : [{ token, project_id, address, scope }]
  })

function scopeIn(envelope: Envelope | null): UnsubscribeScope | undefined {
  const { topic, category } = envelope ?? {}
  if (topic !== undefined) return { type: "topic", key: topic }
  return category === undefined ? undefined : { type: "category", key: category }
}
