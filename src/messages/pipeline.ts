import { count, eq, sql } from "drizzle-orm"
import { log } from "../core/log"
import { monotonic, now } from "../core/time"
import { emitAll, type NewEvent } from "../events/emit"
import { arrivalsOf } from "../jobs/arrivals"
import { countTable } from "../jobs/counts"
import {
  DeferredError,
  type Hold,
  READY,
  type RetrySchedule,
  type WorkResult,
} from "../jobs/work-item"
import { WorkRows, wakeUpOf } from "../jobs/work-rows"
import type { WorkTable } from "../jobs/work-table"
import { STORED } from "../plans/stored-bytes"
import type { Outcome } from "../providers/provider"
import { type Bump, bumpAll } from "../store/counters"
import { inserter, prepared } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import { fanOutBumps, load } from "./change"
import type { Channel, Ready } from "./channel"
import { filesOf, readAhead, recentContentsOf, storedSizes } from "./contents"
import { countByDay } from "./day-counts"
import { eventsOf } from "./event-data"
import { asMessage, CREATED } from "./new-rows"
import {
  type DeliveryAttempt,
  expireUnheard,
  isUnheard,
  LOGIN_REFUSED,
  type MessageStop,
  settle,
  stopAll,
} from "./settle"
import {
  announce,
  announceStatus,
  counterOf,
  countsByDay,
  eventTypeOf,
  isOpen,
  MAY_EXPIRE,
  type Message,
  type StatusChange,
  tellsScheduled,
} from "./status-changes"
import {
  attempts,
  type ChannelName,
  type DeliveredMessage,
  messageContents,
  messageFiles,
  messages,
  messageTags,
  type NewMessage,
  type ReceivedMessage,
} from "./tables"

export { type Message, OWN_SOURCE } from "./status-changes"

export type Channels = Record<ChannelName, Channel>

/** Speaks only where our own fault stopped an attempt: an outcome brings the schedule of its provider. */
const BROKEN_SCHEDULE: RetrySchedule = (attempt, age) =>
  age > 48 * 3600 ? undefined : Math.min(5 * attempt, TEN_MINUTES)

const TEN_MINUTES = 600

export const messageRows = new WorkRows<Message>(messages, messages.priority, {
  buried: (status_reason) => ({ status_reason }),
  idle: MAY_EXPIRE,
})

export const countMessages = (at_once?: number) =>
  countTable(messageRows, messages.channel, ({ channel }) => channel, at_once)

/** Why the messages of a fan-out of the project are not sent any more; undefined while they are. */
export type StopLookup = (
  db: Reader,
  project_id: string,
  fan_out_id: string,
) => Promise<MessageStop | undefined>

/**
 * The table of messages as work: each is delivered by its channel, whose name is its queue. One of a fan-out
 * that `stopOf` calls stopped ends without an attempt.
 */
export const messageTable = (
  store: Store,
  channels: Channels,
  stopOf: StopLookup = async () => undefined,
): WorkTable<Message, DeliveryAttempt> => ({
  rows: messageRows,
  queueOf: ({ channel }) => channel,
  scheduleOf: () => BROKEN_SCHEDULE,
  async run(message, recheck) {
    if (isUnheard(message)) return { done: (tx) => expireUnheard(tx, message.id) }
    const { project_id, fan_out_id } = message
    const stop = fan_out_id === null ? undefined : await stopOf(store.read, project_id, fan_out_id)
    if (stop) return { done: (tx) => endStopped(tx, message, stop) }
    return deliver(store, channels, message, recheck)
  },
  settle,
  settles_apart_ms: 8,
  async onClaim(list) {
    announceStatus(store.read, list, "sending")
    await readAhead(store.read, list).catch(() => {}) // each attempt then reads its own, and tells the fault
  },
  onRelease: (list) => announceStatus(store.read, list, "queued"),
})

async function endStopped(tx: Tx, { id }: Message, stop: MessageStop): Promise<void> {
  const message = await load(tx, id)
  if (message) await stopAll(tx, [message], stop)
}

/**
 * The only way in. Messages, contents and events are written together or not at all. A scheduled
 * email has no event yet: `settle` writes it with the end of the first claim.
 */
export async function accept(tx: Tx, list: NewMessage[]): Promise<Message[]> {
  const sizes = storedSizes(list)
  const accepted = list.map((message, at) => asMessage(message, sizes[at]))
  await insertMessages(tx, accepted)
  await insertContents(
    tx,
    list.flatMap(({ id, content, delivered }) => (delivered ? [] : { message_id: id, content })),
  )
  await insertTags(tx, accepted.filter(({ tags }) => tags.length > 0).flatMap(tagsOf))
  const files = accepted.flatMap((message, at) => filesOf(message, list[at]?.content))
  if (files.length > 0) await insertFiles(tx, files)
  const waiting = accepted.filter(({ state }) => state === READY)
  const is_plain = list.every((one) => !(one.refused || one.received || one.delivered))
  await emitAll(tx, [
    ...queuedEvents(accepted),
    ...accepted.flatMap(leftOutEvents),
    ...(is_plain ? NO_EVENTS : endedEvents(accepted, list)),
  ])
  await bumpAll(tx, countsOf(accepted))
  const by_day = accepted.filter(({ channel }) => countsByDay(channel))
  if (by_day.length > 0) await countByDay(tx, by_day.map(isNew))
  for (const message of accepted) announce(tx, message, firstType(message))
  tx.afterCommit(() => {
    const contents = recentContentsOf(tx)
    for (const [
      at,
      { id, content, scheduled_at, refused, received, delivered },
    ] of list.entries()) {
      if (!scheduled_at && !refused && !received && !delivered)
        contents.keep(id, content, { size: sizes[at]?.content })
    }
    const arrivals = arrivalsOf<Message>(tx, messageRows.name)
    for (const message of waiting) arrivals?.keep(message.id, message)
    if (waiting.length > 0) wakeUpOf(tx, "messages").wakeUp()
  })
  return accepted
}

/**
 * The only way out: one attempt. It may run twice, so a settled message is left alone, and one that
 * was claimed again while this process slept belongs to its later claim.
 */
export async function deliver(
  store: Store,
  channels: Channels,
  message: Message,
  recheck: () => Promise<Message | undefined>,
): Promise<WorkResult<DeliveryAttempt>> {
  if (!isDeliverable(message)) return {}
  const channel = channels[message.channel]
  try {
    const content = await contentOf(store, message.id)
    const ready = (await channel.prepare?.(message, content, message.attempt)) ?? { content }
    const endTurn = await channel.permit?.()
    try {
      const still = await recheck()
      return still && isDeliverable(still) ? await attempt(store, channel, still, ready) : {}
    } finally {
      endTurn?.()
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
  const end = { outcome, started_at, duration_ms, attempt: message.attempt, keep: keep?.() }
  const over = { end, frees_slot: true }
  if (outcome.login_refused) {
    const hold: Hold = { until: null, ...outcome.login_refused, was_tried: true }
    return { ...over, hold }
  }
  const deferred = [outcome, ...outcome.others].find(({ status }) => status === "retry")
  if (!deferred) return over
  const retry = deferred.reason ?? "The other side asked for another attempt later."
  return { ...over, retry, schedule: outcome.schedule }
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
  const known = recentContentsOf(store.read).remove(message_id)
  if (known !== undefined) return known
  const [found] = await findContent(store.read, { message_id })
  if (!found) throw new Error("a message that is still open has no content")
  return found.content
}

const isNew = (message: Message) => ({ message, by: 1 as const })

const tagsOf = ({ id: message_id, project_id, tags }: Message) =>
  [...new Set(tags)].map((tag) => ({ project_id, tag, message_id }))

function firstType(message: Message): string | null {
  const { channel, status } = message
  if (isOpen(status) && !isToldNow(message)) return null
  return eventTypeOf(channel, status) ?? (isOpen(status) ? null : message.last_event_type)
}

/** A scheduled message has no event yet, unless its channel tells of it at once. */
const isToldNow = ({ scheduled_at, channel, status }: Message): boolean =>
  status !== "received" && (scheduled_at === null || tellsScheduled(channel))

function queuedEvents(accepted: Message[]): NewEvent[] {
  const all: NewEvent[] = []
  for (const message of accepted) {
    if (!isToldNow(message)) continue
    for (const { email: address } of message.recipients)
      all.push(...eventsOf(message, { type: "queued", address }, message.created_at))
  }
  return all
}

const NO_EVENTS: NewEvent[] = []

/** Of messages that end where they are accepted. */
const endedEvents = (accepted: Message[], list: NewMessage[]): NewEvent[] => [
  ...accepted.filter(({ error }) => error).flatMap(refusedEvents),
  ...accepted.flatMap((message, at) => receivedEvents(message, list[at]?.received)),
  ...accepted.flatMap((message, at) => createdEvents(message, list[at]?.delivered)),
]

const leftOutEvents = (message: Message): NewEvent[] =>
  (message.envelope?.left_out ?? []).flatMap(({ email: address, text }) =>
    failedEvents(message, address, { code: "suppressed_recipient", message: text }),
  )

const refusedEvents = (message: Message): NewEvent[] => {
  const { code = "", message: text = "" } = message.error ?? {}
  return message.recipients.flatMap(({ email: address }) =>
    failedEvents(message, address, { code, message: text }),
  )
}

const receivedEvents = (message: Message, received: ReceivedMessage | undefined): NewEvent[] =>
  received
    ? eventsOf(
        message,
        { type: "received", address: message.address, received },
        message.created_at,
      )
    : []

const createdEvents = (message: Message, delivered: DeliveredMessage | undefined): NewEvent[] =>
  delivered ? eventsOf(message, createdFact(message, delivered), message.created_at) : []

const createdFact = ({ address }: Message, { external_id }: DeliveredMessage): StatusChange => ({
  ...{ type: CREATED, address, by: { external_id } },
})

const failedEvents = (
  message: Message,
  address: string,
  error: NonNullable<StatusChange["error"]>,
) => eventsOf(message, { type: "failed", address, error }, message.created_at)

function countsOf(accepted: Message[]): Bump[] {
  const bumps: Bump[] = []
  for (const message of accepted) {
    const { project_id: owner, channel, status, stored_bytes } = message
    bumps.push({ owner, name: channel, by: 1 })
    bumps.push({ owner, name: STORED[channel], by: stored_bytes ?? 0 })
    if (isOpen(status)) continue
    bumps.push({ owner, name: counterOf(channel, status), by: 1 })
    bumps.push(...fanOutBumps({ ...message, status: "queued" }, status))
  }
  return bumps
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
