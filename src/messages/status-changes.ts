import { getTableColumns, sql } from "drizzle-orm"
import { log } from "../core/log"
import { millis, now } from "../core/time"
import { lookup } from "../events/registry"
import type { EventDetail } from "../events/tables"
import { LEASED, READY } from "../jobs/work-item"
import { perStore } from "../store/cached"
import type { Reader, Tx } from "../store/store"
import {
  type Addressed,
  type ChannelName,
  messages,
  type ReceivedMessage,
  type Status,
} from "./tables"

export type Message = typeof messages.$inferSelect

const {
  priority,
  envelope,
  batch_id,
  stream,
  api_key_id,
  idempotency_key,
  rfc_message_id,
  thread_id,
  subject_key,
  stored_bytes,
  updated_at,
  ...needed
} = getTableColumns(messages)

export const tracked = needed

export type Tracked = Pick<Message, keyof typeof tracked>

/** The `source` of what the instance itself sends, which no request can name. */
export const OWN_SOURCE = "system"

/** The `source` of codes and links for the end users of a project. */
export const AUTH_SOURCE = "auth"

export interface StatusChange {
  type: string
  /** Its address: of an email the mailbox, of an SMS the number, of a push message the device. */
  address: string
  bounce_type?: "Permanent" | "Transient"
  bounce_subtype?: string | null
  complaint_feedback_type?: string
  error?: { code: string; message: string }
  detail?: EventDetail | null
  /** When it became true; without it, when it is written. */
  at?: string
  /** Beside `failed`: the recipient's server deferred the message until it was given up. */
  is_soft?: true
  /** Beside `failed` and `undelivered`: the recipient wants no more messages. */
  opted_out?: true
  /** Of a message that came in. */
  received?: ReceivedMessage
  /** Of a message that its subscriber reads where it is kept: their name in the project, and the action that they used. */
  by?: { external_id: string; action_key?: string }
  was_told?: true
}

/** Whether no attempt has ended the message yet: its recipient may be tried, or tried again. */
export const isOpen = (status: Status) => status === "queued" || status === "sending"

/**
 * Since when the message is wanted: its scheduled time, or when it was accepted. Ages, the Date header
 * and the time of its signature count from here.
 */
export const wantedSince = ({
  scheduled_at,
  created_at,
}: Pick<Message, "scheduled_at" | "created_at">): string => scheduled_at ?? created_at

/**
 * Whether the message waits for its scheduled time, and no attempt has begun: its first event tells
 * that it is released. A claimed one is about to be released.
 */
export const isScheduled = ({
  status,
  scheduled_at,
  last_event_type,
}: Pick<Message, "status" | "scheduled_at" | "last_event_type">): boolean =>
  isOpen(status) && scheduled_at !== null && last_event_type === null

const { id, project_id, channel, status, status_reason, address, recipients } = needed
const { state, run_at, attempt, scheduled_at, created_at } = needed

/** The columns that listeners need; rows have more. */
export const ANNOUNCED = {
  ...{ id, project_id, channel, status, status_reason, address, recipients },
  ...{ state, run_at, attempt, scheduled_at, created_at },
}

type Announced = Pick<Message, keyof typeof ANNOUNCED>

type Timed = "state" | "run_at" | "attempt" | "status_reason" | "recipients" | "scheduled_at"

/** When the message is tried again, where an attempt, a deferral or its sender has said so. */
export function nextAttemptAt(message: Pick<Announced, Timed>): string | null {
  const { state, run_at, attempt, status_reason, recipients, scheduled_at } = message
  const is_new = attempt === 0 && status_reason === null && scheduled_at === null
  if (state !== READY || is_new) return null
  return recipients.some(({ status }) => isOpen(status)) ? run_at : null
}

/** Of a message that left: it waits only to expire, unless somebody acknowledges it (`isUnheard` in `settle.ts`). */
export const MAY_EXPIRE = sql`(${messages.status} = 'sent' AND ${messages.channel} = 'push')`

/** A change of a message's status that is on disk, for listeners: `belfry up`, the monitor. */
export interface MessageActivity {
  id: string
  project_id: string
  channel: ChannelName
  status: Status
  status_reason: string | null
  recipient: string
  at: string
  event_type: string | null
  elapsed_ms: number
  next_attempt_at: string | null
}

const watchersOf = perStore(() => new Set<(activity: MessageActivity) => void>())

/**
 * Calls `watcher` after each commit of the store that changed a status, until the returned function is
 * called. An error of the watcher is logged, never thrown.
 */
export function watch(db: Reader, watcher: (activity: MessageActivity) => void): () => void {
  const watchers = watchersOf(db)
  watchers.add(watcher)
  return () => void watchers.delete(watcher)
}

export function announce(tx: Tx, message: Announced, event_type: string | null) {
  if (watchersOf(tx).size === 0) return
  const told = activityOf(message, event_type)
  tx.afterCommit(() => notifyWatchers(tx, told))
}

/** Tells the watchers of claims, or of their release: nothing is written of these. */
export function announceStatus(db: Reader, messages: Announced[], status: "queued" | "sending") {
  if (watchersOf(db).size === 0) return
  for (const message of messages) {
    if (!isOpen(message.status)) continue
    const state = status === "sending" ? LEASED : READY
    notifyWatchers(db, activityOf({ ...message, status, state }, null))
  }
}

function activityOf(message: Announced, event_type: string | null): MessageActivity {
  const { id, project_id, channel, status, status_reason, address: recipient } = message
  const next_attempt_at = nextAttemptAt(message)
  const elapsed_ms = Math.max(0, millis() - Date.parse(wantedSince(message)))
  const told = { id, project_id, channel, status, status_reason, recipient, next_attempt_at }
  return { ...told, at: now(), event_type, elapsed_ms }
}

export function notifyWatchers(db: Reader, activity: MessageActivity) {
  for (const watcher of watchersOf(db)) {
    try {
      watcher(activity)
    } catch (error) {
      log.error("a watcher of messages failed", { error })
    }
  }
}

export const addressOf = ({ email: address }: Addressed): string => address

interface StatusRow {
  /** A status never moves to one of the same or a lower rank, except back to `queued` for a retry. */
  rank: number
  /** Where the rank says too little: the statuses that it may follow. */
  from?: readonly Status[]
}

interface ChannelTable {
  /** The field of its events that names the recipient; absent where none does. */
  address_field?: string
  prefix: string
  statuses: Partial<Record<Status, StatusRow>>
  /** Its bounces and complaints suppress addresses, and count for the reputation of the account. */
  bounces_count?: true
  /** A report of something that came before what is known already is told, too. */
  tells_late?: true
  /** Whether `queued` is told when the message is accepted or, if it is scheduled, when it is released. */
  queued_told: "at_accept" | "at_release"
  /** Its messages are counted by day, for statistics: by their provider, or also by their kind and their failure. */
  counted_by_day?: "by_provider" | "by_kind"
  /** What one unit of its quota is. */
  unit: string
  /** The messages of one batch are one send, which the frequency cap counts once. */
  one_send?: true
  /** A content stays as long as its message, which shows it wherever it is read. */
  keeps_contents?: true
}

const HANDED_OVER = {
  queued: { rank: 0 },
  sending: { rank: 1 },
  sent: { rank: 2 },
  delivered: { rank: 3 },
}

/** Before a provider or a server has taken the message. */
const OPEN = ["queued", "sending"] as const

/**
 * The statuses of each channel (contracts 20, section 3, 40 and 41). Ranks, final states, events and
 * counters follow from these rows.
 */
const CHANNELS: Record<ChannelName, ChannelTable> = {
  email: {
    address_field: "recipient_email",
    prefix: "email",
    statuses: {
      ...HANDED_OVER,
      failed: { rank: 4 },
      bounced: { rank: 5 },
      complained: { rank: 6 },
    },
    queued_told: "at_release",
    unit: "recipient",
    bounces_count: true,
    tells_late: true,
  },
  push: {
    address_field: "device_id",
    prefix: "push",
    statuses: {
      ...HANDED_OVER,
      expired: { rank: 3 },
      failed: { rank: 3, from: OPEN },
      cancelled: { rank: 3, from: ["queued"] },
    },
    queued_told: "at_release",
    unit: "device",
    counted_by_day: "by_kind",
    one_send: true,
  },
  sms: {
    address_field: "to",
    prefix: "sms",
    statuses: {
      ...HANDED_OVER,
      undelivered: { rank: 3 },
      failed: { rank: 3 },
      cancelled: { rank: 3, from: ["queued"] },
      received: { rank: 4, from: [] },
    },
    queued_told: "at_accept",
    unit: "segment",
    counted_by_day: "by_provider",
  },
  in_app: {
    prefix: "inbox",
    statuses: { queued: { rank: 0 }, delivered: { rank: 1 } },
    queued_told: "at_release",
    unit: "message",
    keeps_contents: true,
  },
}

export function mayFollow(channel: ChannelName, next: Status, current: Status): boolean {
  const { statuses } = CHANNELS[channel]
  const row = statuses[next]
  const before = statuses[current]
  if (!row || !before || row.rank <= before.rank) return false
  return row.from === undefined || row.from.includes(current)
}

/** Whether a report of this is told, when the recipient has this status already. */
export function isNews(channel: ChannelName, fact: Status, current: Status): boolean {
  if (fact === current) return false
  return CHANNELS[channel].tells_late === true || mayFollow(channel, fact, current)
}

export const knowsStatus = (channel: ChannelName, status: string): status is Status =>
  Object.hasOwn(CHANNELS[channel].statuses, status)

/** The statuses of the channel, in the order of their ranks. */
export const statusesOf = (channel: ChannelName): Status[] =>
  Object.keys(CHANNELS[channel].statuses) as Status[]

/** The counters of what is settled in the channel: what is open is the difference to all. */
export const settledCounters = (channel: ChannelName): string[] =>
  statusesOf(channel).flatMap((status) => (isOpen(status) ? [] : [counterOf(channel, status)]))

export const counterOf = (channel: ChannelName, status: Status): string => `${channel}.${status}`

/** The name of a fact in `last_event_type`, whether an event tells of it or not. */
export const factName = (channel: ChannelName, fact: string): string =>
  `${CHANNELS[channel].prefix}.${fact}`

/** The event type of a fact; undefined where none is registered, such as `push.queued`. */
export const eventTypeOf = (channel: ChannelName, fact: string): string | undefined =>
  lookup(factName(channel, fact))?.type

/** Whether the channel knows the fact: one of its statuses, or what an event of its own tells. */
export const knowsFact = (channel: ChannelName, fact: string): boolean =>
  knowsStatus(channel, fact) || eventTypeOf(channel, fact) !== undefined

export const bouncesCount = (channel: ChannelName): boolean =>
  CHANNELS[channel].bounces_count === true

export const addressIn = (channel: ChannelName, data: Record<string, unknown>): unknown =>
  data[CHANNELS[channel].address_field ?? ""]

export const tellsScheduled = (channel: ChannelName): boolean =>
  CHANNELS[channel].queued_told === "at_accept"

export const countsByDay = (channel: ChannelName): boolean =>
  CHANNELS[channel].counted_by_day !== undefined

export const countsByKind = (channel: ChannelName): boolean =>
  CHANNELS[channel].counted_by_day === "by_kind"

export const unitOf = (channel: ChannelName): string => CHANNELS[channel].unit

export const isOneSend = (channel: ChannelName): boolean => CHANNELS[channel].one_send === true

/** The channels whose contents may go before their messages. */
export const EXPIRING_CHANNELS = (Object.keys(CHANNELS) as ChannelName[]).filter(
  (channel) => CHANNELS[channel].keeps_contents !== true,
)

/** Those codes of the other side that the error of a message shows. */
export const codesOf = ({
  smtp_code = null,
  enhanced_code = null,
  provider_code,
}: Partial<EventDetail>) => ({
  ...{ smtp_code, enhanced_code },
  ...(provider_code !== undefined && { provider_code }),
})
