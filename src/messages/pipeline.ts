import { eq } from "drizzle-orm"
import { log } from "../core/log"
import { monotonic, now, secondsFromNow } from "../core/time"
import { emitAll } from "../events/emit"
import type { Hold } from "../jobs/holds"
import type { Verdict } from "../jobs/job-handler"
import { type ClaimedJob, enqueueAll, type JobKind, PRIORITIES } from "../jobs/queue"
import { DeferredError, type RetrySchedule } from "../jobs/work"
import { searchable } from "../lib/text"
import type { Outcome } from "../providers/provider"
import { bumpEach, type Changes } from "../store/counters"
import { inserter, prepared } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import type { Channel, Ready } from "./channel"
import { announce, eventOf, type Message } from "./facts"
import { FreshContents } from "./fresh-contents"
import { triesBefore } from "./login-refusals"
import { type Attempted, keepRefused, putBack, settleDead, settleLast, wait } from "./settle"
import { type ChannelName, messageContents, messages, messageTags } from "./tables"
import { isFresh, type Taken, takeAgain } from "./take"
import { asItWaited, takeBack } from "./take-back"

export { type Message, OWN_SOURCE } from "./facts"
export { settleAll } from "./settle"

export type Channels = Record<ChannelName, Channel>

/** A message on its way in: complete but for what every new message has in common. */
export interface NewMessage
  extends Omit<
    Message,
    | "status"
    | "subject_key"
    | "status_reason"
    | "provider"
    | "attempts"
    | "next_attempt_at"
    | "error"
    | "last_event_type"
    | "last_event_at"
    | "queued_at"
    | "sent_at"
    | "delivered_at"
    | "bounced_at"
    | "updated_at"
  > {
  content: unknown
}

interface Delivery {
  message_id: string
}

const TEN_MINUTES = 600

/** Speaks only when a handler throws: an outcome brings the schedule of its provider. */
export const deliverMessage: JobKind<Delivery> = {
  name: "message.deliver",
  schedule: (attempt, age) => (age > 48 * 3600 ? undefined : Math.min(5 * attempt, TEN_MINUTES)),
}

/** The only way in. Messages, contents, events and jobs are written together or not at all. */
export async function accept(tx: Tx, list: NewMessage[]): Promise<Message[]> {
  const accepted = list.map(asMessage)
  await insertMessages(tx, accepted)
  await insertContents(
    tx,
    list.map(({ id, content }) => ({ message_id: id, content })),
  )
  await insertTags(tx, accepted.flatMap(tagsOf))
  await emitAll(tx, accepted.flatMap(queuedEvents))
  await enqueueAll(tx, deliverMessage, accepted.map(deliveryOf))
  await bumpEach(tx, countsOf(accepted))
  for (const message of accepted) announce(tx, message, `${message.channel}.queued`)
  tx.afterCommit(() => list.forEach(({ id, content }) => void fresh.keep(id, content)))
  return accepted
}

/**
 * The only way out: one attempt. It may run twice, so a settled message is left alone, and one whose
 * job was taken over while this process slept belongs to whoever has the job now.
 */
export async function deliver(
  store: Store,
  channels: Channels,
  { message_id }: Delivery,
  job: ClaimedJob,
  known?: Taken,
): Promise<Verdict<Attempted>> {
  const taken = known ?? (await takeAgain(store, job))
  if (!taken) return {}
  const channel: Channel = channels[taken.message.channel]
  try {
    const content = await contentOf(store, message_id)
    const ready = (await channel.prepare?.(taken.message, content, job.attempt)) ?? { content }
    const settled = await channel.turn?.()
    try {
      const verdict = await begin(store, { channel, ready, taken, job })
      return settled ? { ...verdict, settled } : verdict
    } catch (error) {
      settled?.()
      throw error
    }
  } catch (error) {
    if (error instanceof DeferredError) return waits(message_id, error, job.attempt)
    return broken(message_id, error)
  } finally {
    channel.leave?.(message_id)
  }
}

interface Beginning {
  channel: Channel
  ready: Ready
  taken: Taken
  job: ClaimedJob
}

async function begin(
  store: Store,
  { channel, ready, taken, job }: Beginning,
): Promise<Verdict<Attempted>> {
  const still = isFresh(taken) ? taken : await takeAgain(store, job)
  if (!still) return {}
  const { message } = still
  const started_at = now()
  const begun = monotonic()
  const outcome = await begunAnew(store, job, await channel.deliver(message, ready.content))
  const duration_ms = Math.round(monotonic() - begun)
  const { keep } = ready
  const tried = { outcome, started_at, duration_ms, attempt: job.attempt, keep }
  return verdictOf({ message_id: message.id, tried })
}

/** Refused logins were no tries of the recipient's server, so they move its schedule no further. */
async function begunAnew(store: Store, { id, attempt }: ClaimedJob, outcome: Outcome) {
  if (attempt === 1 || ![outcome, ...outcome.others].some(({ status }) => status === "retry")) {
    return outcome
  }
  const before = await triesBefore(store.read, id)
  if (before === undefined) return outcome
  const schedule: RetrySchedule = (_, age_seconds) => outcome.schedule(before + 1, age_seconds)
  return { ...outcome, schedule }
}

const fresh = new FreshContents()

async function contentOf(store: Store, message_id: string): Promise<unknown> {
  const known = fresh.take(message_id)
  if (known !== undefined) return known
  const [found] = await findContent(store.read, { message_id })
  if (!found) throw new Error("the content of a message that is still open is gone")
  return found.content
}

/** The queue has tried often enough: whoever is still open has failed. */
export const giveUp = (tx: Tx, { message_id }: Delivery, reason: string) =>
  settleDead(tx, message_id, reason)

/** The queue itself waits, and with it whoever is still open. */
export const waitFor = (
  tx: Tx,
  { message_id }: Delivery,
  { until, reason }: Hold,
  { attempt }: ClaimedJob,
) => takeBack(tx, message_id, { until, reason, attempts: attempt - 1 })

/** Taken with others, and never begun: as if nobody had looked. */
export const unbegun = (tx: Tx, { message_id }: Delivery, { attempt, run_at }: ClaimedJob) =>
  takeBack(tx, message_id, { until: asItWaited(run_at), attempts: attempt - 1 })

function verdictOf(attempted: Attempted): Verdict<Attempted> {
  const { outcome } = attempted.tried
  if (outcome.login_refused) return refusedVerdict(attempted, outcome.login_refused)
  const deferred = [outcome, ...outcome.others].find(({ status }) => status === "retry")
  if (!deferred) return { end: attempted }
  return {
    retry: deferred.reason ?? "The other side asked for another attempt later.",
    schedule: outcome.schedule,
    waiting: (tx, next_at) => wait(tx, attempted, next_at),
    dying: (tx) => settleLast(tx, attempted),
  }
}

/** One asked for all: the attempt is recorded, and the message waits with the others. */
function refusedVerdict(attempted: Attempted, { reason, by }: { reason: string; by: string }) {
  const hold: Hold = { until: null, reason, by, was_tried: true }
  return { hold, holding: (tx: Tx) => keepRefused(tx, attempted, reason) }
}

/** Nothing was tried: back to the queue as it was, and it says why and until when. */
function waits(
  message_id: string,
  { message: reason, seconds, by }: DeferredError,
  attempt: number,
) {
  const until = seconds === null ? null : secondsFromNow(seconds)
  const hold: Hold = { until, reason, ...(by !== undefined && { by }) }
  const holding = (tx: Tx) => takeBack(tx, message_id, { until, reason, attempts: attempt - 1 })
  return { hold, holding }
}

/** Our own fault is no outcome: the message waits, and says that it was not the recipient's. */
function broken(message_id: string, error: unknown): Verdict<Attempted> {
  log.error("a delivery broke", { message_id, error })
  return {
    retry: "An internal error stopped the attempt. The log has the reason.",
    waiting: (tx, next_at) => putBack(tx, message_id, next_at),
  }
}

function asMessage({ content: _, ...fresh }: NewMessage): Message {
  const { created_at } = fresh
  return {
    ...fresh,
    subject_key: fresh.subject === null ? null : searchable(fresh.subject),
    status: "queued",
    status_reason: null,
    provider: null,
    attempts: 0,
    next_attempt_at: null,
    error: null,
    last_event_type: `${fresh.channel}.queued`,
    last_event_at: created_at,
    queued_at: created_at,
    sent_at: null,
    delivered_at: null,
    bounced_at: null,
    updated_at: created_at,
  }
}

const tagsOf = ({ id: message_id, project_id, tags }: Message) =>
  [...new Set(tags)].map((tag) => ({ project_id, tag, message_id }))

const queuedEvents = (message: Message) =>
  message.recipients.map(({ email }) =>
    eventOf(message, { type: "queued", recipient_email: email }, message.created_at),
  )

const deliveryOf = ({ id, project_id, stream }: Message) => ({
  id, // the job carries the message's id: cancelling finds it without a search
  payload: { message_id: id },
  project_id,
  priority: {
    auth: PRIORITIES.urgent,
    transactional: PRIORITIES.normal,
    broadcast: PRIORITIES.bulk,
  }[stream],
})

function countsOf(accepted: Message[]): Map<string, Changes> {
  const counts = new Map<string, Changes>()
  for (const { project_id, channel } of accepted) {
    const changes: Changes = counts.get(project_id) ?? new Map()
    changes.set(channel, (changes.get(channel) ?? 0) + 1)
    counts.set(project_id, changes)
  }
  return counts
}

const insertMessages = inserter(messages)
const insertContents = inserter(messageContents)
const insertTags = inserter(messageTags)

const findContent = prepared({ message_id: messageContents.message_id }, (db: Reader, slot) =>
  db
    .select({ content: messageContents.content })
    .from(messageContents)
    .where(eq(messageContents.message_id, slot.message_id)),
)
