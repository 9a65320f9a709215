import type { NewEvent } from "../events/emit"
import { lookup } from "../events/registry"
import { isOpen, type Message, type StatusChange } from "./status-changes"
import type { ChannelName, Status } from "./tables"

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
  /** Whether `queued` is told when the message is accepted or, if it is scheduled, when it is released. */
  queued_told: "at_accept" | "at_release"
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
    bounces_count: true,
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
  },
  sms: {
    address_field: "to",
    prefix: "sms",
    statuses: {
      ...HANDED_OVER,
      undelivered: { rank: 3 },
      failed: { rank: 3 },
      cancelled: { rank: 3, from: ["queued"] },
    },
    queued_told: "at_accept",
  },
  in_app: {
    prefix: "inbox",
    statuses: {
      queued: { rank: 0 },
      sending: { rank: 1 },
      delivered: { rank: 2 },
      failed: { rank: 2, from: OPEN },
      expired: { rank: 3 },
    },
    queued_told: "at_release",
  },
}

export function mayFollow(channel: ChannelName, next: Status, current: Status): boolean {
  const { statuses } = CHANNELS[channel]
  const row = statuses[next]
  const before = statuses[current]
  if (!row || !before || row.rank <= before.rank) return false
  return row.from === undefined || row.from.includes(current)
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

type EventSubject = Pick<
  Message,
  "id" | "account_id" | "project_id" | "channel" | "tags" | "metadata" | "subject"
> &
  Partial<NotOfEmail>

type NotOfEmail = Pick<Message, "provider" | "sender" | "subscriber_id" | "category">

/** None where no type is registered for the fact. `at`: its time in the message's row. */
export function eventsOf(message: EventSubject, fact: StatusChange, at: string): NewEvent[] {
  const type = eventTypeOf(message.channel, fact.type)
  if (type === undefined) return []
  const { account_id, project_id, id: subject_id, channel } = message
  const data = DATA[channel](message, fact, at)
  return [{ account_id, project_id, subject_id, type, data, detail: fact.detail ?? null }]
}

type DataOf = (message: EventSubject, fact: StatusChange, at: string) => Record<string, unknown>

/** The fields of contract 30, section 6. */
const DATA: Record<ChannelName, DataOf> = {
  email: ({ id, tags, metadata, subject }, fact, timestamp) => ({
    message_id: id,
    recipient_email: fact.address,
    timestamp,
    bounce_type: fact.bounce_type ?? null,
    bounce_subtype: fact.bounce_subtype ?? null,
    complaint_feedback_type: fact.complaint_feedback_type ?? null,
    tags,
    metadata,
    subject,
    ...(fact.error && { error: fact.error }),
  }),
  push: ({ id, provider = null, metadata }, fact, timestamp) => ({
    push_message_id: id,
    provider,
    timestamp,
    ...errorOf(fact),
    device_id: fact.address,
    metadata,
  }),
  sms: ({ id, sender = null, provider = null, metadata }, fact, timestamp) => ({
    sms_message_id: id,
    to: fact.address,
    from: sender,
    timestamp,
    provider,
    ...errorOf(fact),
    metadata,
  }),
  in_app: ({ id, subscriber_id = null, category = null, metadata }, _, timestamp) => ({
    inbox_message_id: id,
    subscriber_id,
    timestamp,
    category,
    metadata,
  }),
}

const errorOf = ({ error }: StatusChange) => ({
  error_code: error?.code ?? null,
  error_message: error?.message ?? null,
})
