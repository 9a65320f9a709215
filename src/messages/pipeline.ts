import { count, eq, sql } from "drizzle-orm"
import { log } from "../core/log"
import { monotonic, now } from "../core/time"
import { emitAll, type NewEvent } from "../events/emit"
import { countTable } from "../jobs/counts"
import { recentRowsOf } from "../jobs/in-flight"
import { wakeUpOf } from "../jobs/wake-ups"
import {
  DeferredError,
  type Hold,
  PRIORITIES,
  READY,
  type RetrySchedule,
  type WorkColumns,
  type WorkResult,
} from "../jobs/work-item"
import { WorkRows } from "../jobs/work-rows"
import type { WorkTable } from "../jobs/work-table"
import { searchable } from "../lib/text"
import type { Outcome } from "../providers/provider"
import { perStore } from "../store/cached"
import { bumpEach, type Changes } from "../store/counters"
import { inserter, prepared } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import type { Channel, Ready } from "./channel"
import { eventsOf } from "./event-data"
import { announce, announceStatus, isOpen, type Message } from "./facts"
import { type DeliveryAttempt, LOGIN_REFUSED, settle } from "./settle"
import {
  attempts,
  type ChannelName,
  type Envelope,
  messageContents,
  messageFiles,
  messages,
  messageTags,
  type Stream,
} from "./tables"
import { eventTypeOf, factName, tellsScheduled } from "./transitions"

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
      | "priority"
      | keyof WorkColumns
      | "error"
      | "last_event_type"
      | "last_event_at"
      | "sent_at"
      | "delivered_at"
      | "bounced_at"
      | "updated_at"
      | keyof SomeMessages
    >,
    Partial<SomeMessages> {
  content: unknown
}

/** What only some messages have. */
type SomeMessages = Pick<
  Message,
  "scheduled_at" | "template_id" | "subscriber_id" | "category" | "fan_out_id"
>

/** Speaks only where our own fault stopped an attempt: an outcome brings the schedule of its provider. */
const BROKEN_SCHEDULE: RetrySchedule = (attempt, age) =>
  age > 48 * 3600 ? undefined : Math.min(5 * attempt, TEN_MINUTES)

const TEN_MINUTES = 600

export const messageRows = new WorkRows<Message>(messages, messages.priority, {
  buried: (status_reason) => ({ status_reason }),
})

/** What waits, runs and failed, by channel. */
export const countMessages = (at_once?: number) =>
  countTable(messageRows, messages.channel, ({ channel }) => channel, at_once)

/** The table of messages as work: each is delivered by its channel, whose name is its queue. */
export const messageTable = (
  store: Store,
  channels: Channels,
): WorkTable<Message, DeliveryAttempt> => ({
  rows: messageRows,
  queueOf: ({ channel }) => channel,
  scheduleOf: () => BROKEN_SCHEDULE,
  run: (message, recheck) => deliver(store, channels, message, recheck),
  settle,
  onClaim: (list) => announceStatus(store.read, list, "sending"),
  onRelease: (list) => announceStatus(store.read, list, "queued"),
})

/**
 * The only way in. Messages, contents and events are written together or not at all. A scheduled
 * email has no event yet: `settle` writes it with the end of the first claim.
 */
export async function accept(tx: Tx, list: NewMessage[]): Promise<Message[]> {
  const accepted = list.map(asMessage)
  await insertMessages(tx, accepted)
  await insertContents(
    tx,
    list.map(({ id, content }) => ({ message_id: id, content })),
  )
  await insertTags(tx, accepted.flatMap(tagsOf))
  const files = accepted.flatMap(filesOf)
  if (files.length > 0) await insertFiles(tx, files)
  const due = accepted.filter(({ scheduled_at }) => scheduled_at === null)
  const told = accepted.filter(isToldNow)
  await emitAll(tx, [...told.flatMap(queuedEvents), ...accepted.flatMap(leftOutEvents)])
  await bumpEach(tx, countsOf(accepted))
  for (const message of accepted) {
    const type = isToldNow(message) ? eventTypeOf(message.channel, "queued") : undefined
    announce(tx, message, type ?? null)
  }
  tx.afterCommit(() => {
    const recent = recentOf(tx)
    for (const { id, content, scheduled_at } of list) if (!scheduled_at) recent.keep(id, content)
    recentRowsOf<Message>(tx, messageRows.name)?.keep(due)
    wakeUpOf(tx, "messages").wakeUp()
  })
  return accepted
}

type Recheck = () => Promise<Message | undefined>

/**
 * The only way out: one attempt. It may run twice, so a settled message is left alone, and one that
 * was claimed again while this process slept belongs to its later claim.
 */
export async function deliver(
  store: Store,
  channels: Channels,
  message: Message,
  recheck: Recheck,
): Promise<WorkResult<DeliveryAttempt>> {
  if (!isDeliverable(message)) return {}
  const channel = channels[message.channel]
  try {
    const content = await contentOf(store, message.id)
    const ready = (await channel.prepare?.(message, content, message.attempt)) ?? { content }
    const settled = await channel.permit?.()
    try {
      const still = await recheck()
      const result =
        still && isDeliverable(still) ? await attempt(store, channel, still, ready) : {}
      return settled ? { ...result, settled } : result
    } catch (error) {
      settled?.()
      throw error
    }
  } catch (error) {
    if (error instanceof DeferredError) throw error
    log.error("a delivery broke", { message_id: message.id, error })
    return { retry: "An internal error stopped the attempt. The log has the reason." }
  } finally {
    channel.release?.(message.id)
  }
}

const isDeliverable = ({ recipients }: Message) => recipients.some(({ status }) => isOpen(status))

async function attempt(
  store: Store,
  channel: Channel,
  message: Message,
  { content, keep }: Ready,
): Promise<WorkResult<DeliveryAttempt>> {
  const started_at = now()
  const begun = monotonic()
  const answer = await channel.deliver(message, content)
  const outcome = message.attempt === 1 ? answer : await withoutRefusals(store, message, answer)
  const duration_ms = Math.round(monotonic() - begun)
  const end = { outcome, started_at, duration_ms, attempt: message.attempt, keep }
  if (outcome.login_refused) {
    const hold: Hold = { until: null, ...outcome.login_refused, was_tried: true }
    return { end, hold }
  }
  const deferred = [outcome, ...outcome.others].find(({ status }) => status === "retry")
  if (!deferred) return { end }
  const retry = deferred.reason ?? "The other side asked for another attempt later."
  return { end, retry, schedule: outcome.schedule }
}

/** Refused logins were no tries of the recipient's server, so they move its schedule no further. */
async function withoutRefusals(store: Store, { id }: Message, outcome: Outcome) {
  if (![outcome, ...outcome.others].some(({ status }) => status === "retry")) return outcome
  const refused = eq(attempts.outcome, LOGIN_REFUSED)
  const rows = await store.read
    .select({ refusals: sql<number>`sum(CASE WHEN ${refused} THEN 1 ELSE 0 END)`, all: count() })
    .from(attempts)
    .where(eq(attempts.message_id, id))
  const { refusals, all } = rows[0] ?? { refusals: 0, all: 0 }
  if (Number(refusals) === 0) return outcome
  const tries = Number(all) - Number(refusals)
  const schedule: RetrySchedule = (_, age_seconds) => outcome.schedule(tries + 1, age_seconds)
  return { ...outcome, schedule }
}

async function contentOf(store: Store, message_id: string): Promise<unknown> {
  const known = recentOf(store.read).remove(message_id)
  if (known !== undefined) return known
  const [found] = await findContent(store.read, { message_id })
  if (!found) throw new Error("the content of a message that is still open is gone")
  return found.content
}

const recentOf = perStore(() => new RecentContents())

function asMessage({ content: _, ...fresh }: NewMessage): Message {
  const { created_at } = fresh
  const scheduled_at = fresh.scheduled_at ?? null
  return {
    ...fresh,
    scheduled_at,
    template_id: fresh.template_id ?? null,
    subscriber_id: fresh.subscriber_id ?? null,
    category: fresh.category ?? fresh.envelope?.category ?? null,
    fan_out_id: fresh.fan_out_id ?? null,
    subject_key: fresh.subject === null ? null : searchable(fresh.subject),
    status: "queued",
    status_reason: null,
    provider: null,
    priority: PRIORITY_OF[fresh.stream],
    state: READY,
    run_at: scheduled_at ?? created_at,
    attempt: 0,
    owner: null,
    lease_until: null,
    error: null,
    last_event_type: scheduled_at === null ? factName(fresh.channel, "queued") : null,
    last_event_at: scheduled_at === null ? created_at : null,
    sent_at: null,
    delivered_at: null,
    bounced_at: null,
    updated_at: created_at,
  }
}

const tagsOf = ({ id: message_id, project_id, tags }: Message) =>
  [...new Set(tags)].map((tag) => ({ project_id, tag, message_id }))

const NO_FILES: Pick<Envelope, "submitted" | "attachments"> = { attachments: [] }

/** Attachments of mail that was submitted as bytes are parts of these. */
function filesOf({ id: message_id, envelope }: Message) {
  const { submitted, attachments } = envelope ?? NO_FILES
  if (!submitted && attachments.length === 0) return []
  const names = submitted ? [submitted.sha256] : attachments.map(({ sha256 }) => sha256)
  return [...new Set(names)].flatMap((sha256) => (sha256 ? [{ message_id, sha256 }] : []))
}

/** A scheduled message has no event yet, unless its channel tells of it at once. */
const isToldNow = ({ scheduled_at, channel }: Message): boolean =>
  scheduled_at === null || tellsScheduled(channel)

const queuedEvents = (message: Message) =>
  message.recipients.flatMap(({ email }) =>
    eventsOf(message, { type: "queued", recipient_email: email }, message.created_at),
  )

/** Of copies that are no recipients, because their addresses are suppressed. */
const leftOutEvents = (message: Message): NewEvent[] =>
  (message.envelope?.left_out ?? []).flatMap(({ email, text }) => {
    const error = { code: "suppressed_recipient", message: text }
    const fact = { type: "failed", recipient_email: email, error }
    return eventsOf(message, fact, message.created_at)
  })

/** Codes and links first, then what one person waits for, then what goes to many. */
const PRIORITY_OF: Record<Stream, number> = {
  auth: PRIORITIES.urgent,
  transactional: PRIORITIES.normal,
  broadcast: PRIORITIES.bulk,
}

function countsOf(accepted: Message[]): Map<string, Changes> {
  const counts = new Map<string, Changes>()
  for (const { project_id, channel } of accepted) {
    const changes: Changes = counts.get(project_id) ?? new Map()
    changes.set(channel, (changes.get(channel) ?? 0) + 1)
    counts.set(project_id, changes)
  }
  return counts
}

const insertMessages = inserter(messages, { quiet: true }) // see `jobs/in-flight.ts`

const insertContents = inserter(messageContents)

const insertTags = inserter(messageTags)

const insertFiles = inserter(messageFiles)

const findContent = prepared({ message_id: messageContents.message_id }, (db: Reader, slot) =>
  db
    .select({ content: messageContents.content })
    .from(messageContents)
    .where(eq(messageContents.message_id, slot.message_id)),
)

/** Characters: some thousand letters, more than are under way where delivery keeps up. */
const MOST = 4 * 1024 * 1024

/** Larger contents are not kept: sending them costs far more than reading them back. */
const MOST_OF_ONE = 64 * 1024

/**
 * Contents of messages that were just accepted. Most are delivered within the same second, and need
 * not be read back and parsed for it. The oldest give way; the database has all of them.
 */
export class RecentContents {
  readonly #kept = new Map<string, { content: unknown; size: number }>()
  #size = 0

  keep(message_id: string, content: unknown) {
    const size = sizeOf(content)
    if (size > MOST_OF_ONE) return
    this.#kept.set(message_id, { content, size })
    this.#size += size
    for (const [oldest] of this.#kept) {
      if (this.#size <= MOST) return
      this.remove(oldest)
    }
  }

  /** Once: a second attempt, much later, reads the database. */
  remove(message_id: string): unknown {
    const found = this.#kept.get(message_id)
    if (!found) return undefined
    this.#kept.delete(message_id)
    this.#size -= found.size
    return found.content
  }

  /** Characters that are kept now. */
  get size(): number {
    return this.#size
  }
}

/** In characters, near enough. */
function sizeOf(content: unknown): number {
  if (typeof content === "string") return content.length
  if (typeof content !== "object" || content === null) return 8
  let size = 64
  for (const value of Object.values(content)) size += sizeOf(value)
  return size
}
