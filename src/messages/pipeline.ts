import { and, eq, inArray } from "drizzle-orm"
import { log } from "../core/log"
import { monotonic, now } from "../core/time"
import { emitAll } from "../events/emit"
import { searchable } from "../lib/search-text"
import { bumpAll, type Changes } from "../store/counters"
import type { Verdict } from "../store/job-handler"
import { type ClaimedJob, enqueueAll, isHeld, type Job, PRIORITIES } from "../store/queue"
import { inserter, prepared } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import type { Channel } from "./channel"
import { announce, eventOf, isOpen, type Message } from "./facts"
import { type Attempt, putBack, settle, settleDead, settleLast, wait } from "./settle"
import { type ChannelName, messageContents, messages, messageTags, type Status } from "./tables"

export { type Message, OWN_SOURCE } from "./facts"

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
export const deliverMessage: Job<Delivery> = {
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
  for (const [project_id, changes] of countsOf(accepted)) await bumpAll(tx, project_id, changes)
  for (const message of accepted) announce(tx, message, `${message.channel}.queued`)
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
): Promise<Verdict> {
  const { attempt } = job
  const [found] = await findWithContent(store.read, { id: message_id })
  if (!found?.message.recipients.some(({ status }) => isOpen(status))) return {}

  const message = await store.tx((tx) => markSending(tx, found.message, job))
  if (!message) return {}
  const started_at = now()
  const begun = monotonic()
  const channel: Channel = channels[message.channel]
  try {
    const outcome = await channel.deliver(message, found.content)
    const duration_ms = Math.round(monotonic() - begun)
    return verdictOf(message_id, { outcome, started_at, duration_ms, attempt })
  } catch (error) {
    return broken(message_id, error)
  }
}

/** The queue has tried often enough: whoever is still open has failed. */
export const giveUp = (tx: Tx, { message_id }: Delivery, reason: string) =>
  settleDead(tx, message_id, reason)

function verdictOf(message_id: string, tried: Attempt): Verdict {
  const { outcome } = tried
  const deferred = [outcome, ...outcome.others].find(({ status }) => status === "retry")
  if (!deferred) return { done: (tx) => settle(tx, message_id, tried) }
  return {
    retry: deferred.reason ?? "The other side asked for another attempt.",
    schedule: outcome.schedule,
    waiting: (tx, next_at) => wait(tx, message_id, tried, next_at),
    dying: (tx) => settleLast(tx, message_id, tried),
  }
}

/** Our own fault is no outcome: the message waits, and says that it was not the recipient's. */
function broken(message_id: string, error: unknown): Verdict {
  log.error("a delivery broke", { message_id, error })
  return {
    retry: "An internal error; the log says which.",
    waiting: (tx, next_at) => putBack(tx, message_id, next_at),
  }
}

/** Undefined when the message was settled or cancelled meanwhile, or its job is not ours any more. */
async function markSending(tx: Tx, { id }: Message, job: ClaimedJob) {
  if (!(await isHeld(tx, job))) return undefined
  const attempts = job.attempt
  const [marked] = await mark(tx, { id, attempts, updated_at: now() })
  if (marked) announce(tx, marked, null)
  if (marked) return marked
  const [message] = await tx.select().from(messages).where(eq(messages.id, id))
  if (!message?.recipients.some(({ status }) => isOpen(status))) return undefined
  // The first recipient is settled, and with him the status; the others have their attempt.
  const change = { attempts, next_attempt_at: null, updated_at: now() }
  const again = tx.update(messages).set(change).where(eq(messages.id, id))
  const [counted] = await again.returning()
  return counted
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
    eventOf(message, { type: "queued", recipient_email: email }),
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

const { id, status, attempts, updated_at } = messages

const OPEN: Status[] = ["queued", "sending"]

const mark = prepared({ id, attempts, updated_at }, (tx: Tx, slot) =>
  tx
    .update(messages)
    .set({
      status: "sending",
      next_attempt_at: null,
      attempts: slot.attempts,
      updated_at: slot.updated_at,
    })
    .where(and(eq(id, slot.id), inArray(status, OPEN)))
    .returning(),
)

const findWithContent = prepared({ id }, (db: Reader, slot) =>
  db
    .select({ message: messages, content: messageContents.content })
    .from(messages)
    .innerJoin(messageContents, eq(messageContents.message_id, id))
    .where(eq(id, slot.id)),
)
