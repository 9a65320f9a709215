import {
  keepLinks,
  type NewUnsubscribeLink,
  type UnsubscribeScope,
} from "../consents/unsubscribe-links"
import { ApiError } from "../core/errors"
import { unavailable } from "../http/envelope"
import * as idempotency from "../http/idempotency"
import type { Caller } from "../identity/caller"
import type { ProjectSettings } from "../identity/tables"
import { LIMIT_OF } from "../plans/plans"
import { frozenRefusal, type SendingCaller, throttledRefusal } from "../reputation/gate"
import { Batcher } from "../store/batcher"
import type { Reader, Store, Tx } from "../store/store"
import { countByCountry, refusalsByCountry } from "../tenancy/country-limit"
import {
  bucketsForUpdate,
  giveBack,
  type QuotaAllowance,
  requireRoomFor,
  reserveEach,
  takeFromBucket,
} from "../tenancy/quotas"
import { admitBytes, type StoredShare } from "../tenancy/stored-share"
import { add } from "../tenancy/usage"
import { storedSizes } from "./contents"
import { decided } from "./decided"
import * as messages from "./pipeline"
import { asksAudience } from "./send-fields"
import type { ChannelName, Envelope, NewMessage } from "./tables"

/** A message to accept, and the quota of its channel that it is counted under; null counts nowhere. */
export interface MessageEntry {
  message: NewMessage
  restricted?: SendingCaller | undefined
  allowance: (QuotaAllowance & { sends_per_second: number | null }) | null
  /** What its project may store; absent for mail of the instance itself. */
  share?: StoredShare
  /** The settings by which is decided whether its recipient gets it; absent where nothing is asked. */
  asking?: ProjectSettings | undefined
}

/** Requests of their own; or one request, of which each message stands for itself, or all or none. */
type AcceptMode = "apart" | "permissive" | "strict"

/**
 * Takes messages of any channel from the quota and from the sends of a second, in the transaction that accepts
 * them. `countUsage` follows as its last step. Answers why an entry is refused: what the project may store (403),
 * the month's quota (402), the account's sending status (403, 429), the sends of an hour to a country (429), then those
 * of a second (429). An entry that is not in the answer is admitted.
 */
export async function admit(
  tx: Tx,
  list: MessageEntry[],
  mode: AcceptMode = "apart",
): Promise<Map<MessageEntry, ApiError>> {
  const refused = new Map<MessageEntry, ApiError>()
  for (const step of [refuseFull, reserveAll, refuseByStatus, refuseByCountry, slowDown]) {
    const left = list.filter((entry) => !refused.has(entry))
    await step(tx, { left, mode, refused })
  }
  const to_countries = list.filter((entry) => isToCountry(entry) && !refused.has(entry))
  if (to_countries.length > 0) await countByCountry(tx, to_countries.map(messageOf))
  return refused
}

interface Admission {
  /** What nothing before has refused. */
  left: MessageEntry[]
  mode: AcceptMode
  refused: Map<MessageEntry, ApiError>
}

/**
 * Counts admitted messages as used. It is the last step of a transaction that accepts: one that waits for a
 * subscriber must not hold a count that others wait for.
 */
export const countUsage = (tx: Tx, admitted: MessageEntry[]): Promise<void> =>
  add(tx, admitted.filter(isCounted).map(usageOf))

const unitsOf = ({ message: { units, recipients } }: MessageEntry) => units ?? recipients.length

/** Asks nothing where the plan has no limit. */
async function refuseFull(tx: Tx, admission: Admission) {
  const limited = admission.left.filter(({ share }) => (share?.limit_mb ?? null) !== null)
  if (limited.length === 0) return
  const sizes = storedSizes(limited.map(({ message }) => message))
  const bytes = new Map(limited.map((entry, at) => [entry, sizes[at]?.bytes ?? 0]))
  for (const entries of Map.groupBy(limited, ({ message }) => message.project_id).values()) {
    const share = entries[0]?.share
    const wishes = entries.map((entry) => bytes.get(entry) ?? 0)
    if (share) await ask(admission, entries, wishes, (list) => admitBytes(tx, share, list))
  }
}

/** Asks nothing where the month has no limit. */
async function reserveAll(tx: Tx, admission: Admission) {
  for (const { allowance, entries } of groups(admission.left, limitName)) {
    const { limit } = allowance
    if (limit === null) continue
    const units = entries.map(unitsOf)
    await ask(admission, entries, units, (list) => reserveEach(tx, { ...allowance, limit }, list))
  }
}

/** Asks for what each entry wants. All or none are asked for together. */
async function ask(
  { mode, refused }: Admission,
  entries: MessageEntry[],
  amounts: number[],
  take: (amounts: number[]) => Promise<(ApiError | null)[]>,
) {
  const is_one = mode === "strict"
  const refusals = await take(is_one ? [amounts.reduce((sum, one) => sum + one, 0)] : amounts)
  for (const [at, entry] of entries.entries()) {
    const refusal = refusals[is_one ? 0 : at]
    if (refusal) refused.set(entry, refusal)
  }
}

/** Free accounts of one person share a count, and may have numbers of the operator of their own. */
const limitName = ({ allowance: { subject, metric, limit } }: CountedEntry) =>
  `${subject} ${metric} ${limit}`

/** What stands or falls together has one draw: that of its first message. */
async function refuseByStatus(tx: Tx, { left, mode, refused }: Admission) {
  const restricted = left.filter((entry) => entry.restricted)
  const [first] = restricted
  if (!first) return
  for (const entry of restricted) {
    const refusal = statusRefusal(entry, (mode === "strict" ? first : entry).message.id)
    if (!refusal) continue
    if (mode !== "apart" && refusal.code === "account_frozen") throw refusal
    refused.set(entry, refusal)
    if (entry.allowance) await giveBack(tx, entry.allowance, unitsOf(entry))
  }
}

/** Neither codes and links nor mail that stays in the sandbox are throttled. */
function statusRefusal({ message, restricted }: MessageEntry, drawn_id: string) {
  if (!restricted) return undefined
  const is_exempt = message.stream === "auth" || message.sandbox
  return (
    frozenRefusal(restricted) ?? (is_exempt ? undefined : throttledRefusal(restricted, drawn_id))
  )
}

const messageOf = ({ message }: MessageEntry) => message

const isToCountry = ({ message }: MessageEntry) => message.country !== undefined

/** Holds the buckets first: a publish does so as well, because it learns the countries last. */
async function refuseByCountry(tx: Tx, { left, mode, refused }: Admission) {
  const limited = left.filter(isToCountry)
  if (limited.length === 0) return
  const buckets = groups(left, bucketName)
  await bucketsForUpdate(
    tx,
    buckets.map((one) => bucketOf(one)),
  )
  const refusals = await refusalsByCountry(tx, limited.map(messageOf))
  for (const [at, entry] of limited.entries()) {
    const refusal = refusals[at]
    if (!refusal) continue
    if (mode === "strict") throw refusal
    refused.set(entry, refusal)
    if (entry.allowance) await giveBack(tx, entry.allowance, unitsOf(entry))
  }
}

const bucketOf = ({ message: { project_id, channel }, allowance }: CountedEntry) => ({
  ...{ project_id, channel, limit: allowance.sends_per_second },
})

const bucketName = ({ message: { project_id, channel } }: CountedEntry) =>
  `${project_id} ${channel}`

/** A batch takes its number of emails at once, and waits as a whole. Asks nothing where a second has no limit. */
async function slowDown(tx: Tx, { left, mode, refused }: Admission) {
  for (const { entries, ...first } of groups(left, bucketName)) {
    const bucket = bucketOf(first)
    if (bucket.limit === null) continue
    const sends = mode === "apart" ? entries.map(() => 1) : [entries.length]
    const refusals = await takeFromBucket(tx, bucket, sends)
    const [whole] = refusals
    if (mode !== "apart" && whole) throw whole
    for (const [at, entry] of entries.entries()) {
      const refusal = refusals[at]
      if (!refusal) continue
      refused.set(entry, refusal)
      await giveBack(tx, first.allowance, unitsOf(entry))
    }
  }
}

interface CountedEntry extends MessageEntry {
  allowance: NonNullable<MessageEntry["allowance"]>
}

const isCounted = (entry: MessageEntry): entry is CountedEntry => entry.allowance !== null

/** In one order everywhere, so that no two transactions wait for each other's rows. */
function groups(list: MessageEntry[], keyOf: (entry: CountedEntry) => string) {
  const all = Map.groupBy(list.filter(isCounted), keyOf)
  return [...all.keys()].sort().flatMap((key) => {
    const entries = all.get(key) ?? []
    const [first] = entries
    return first ? [{ ...first, entries }] : []
  })
}

function usageOf(entry: CountedEntry) {
  const { account_id, project_id, channel: metric, created_at } = entry.message
  const day = created_at.slice(0, 10)
  return { account_id, project_id, day, metric, value: unitsOf(entry) }
}

/** What is sent from the sandbox is no use of the service, and counts nothing. */
export const entryOf = (message: NewMessage, caller: Caller): MessageEntry => ({
  message,
  asking: asksAudience(message) ? caller.project_settings : undefined,
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
export async function refuseFrozen(
  db: Reader,
  caller: Caller,
  channel: ChannelName,
  units: number,
): Promise<void> {
  const refusal = frozenRefusal(caller)
  if (!refusal) return
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
>

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
