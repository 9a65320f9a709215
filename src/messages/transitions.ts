import { lookup } from "../events/registry"
import { isOpen } from "./facts"
import type { ChannelName, Status } from "./tables"

/** One status that a message of a channel may reach. */
interface StatusRow {
  /** A status never moves to one of the same or a lower rank, except back to `queued` for a retry. */
  rank: number
  /** Where the rank says too little: the statuses that it may follow. */
  from?: readonly Status[]
}

interface ChannelTable {
  /** The first word of its event types. */
  prefix: string
  statuses: Partial<Record<Status, StatusRow>>
  /** Whether `queued` is told when the message is accepted or, if it is scheduled, when it is released. */
  queued_told: "at_accept" | "at_release"
}

/** Before a provider or a server has taken the message. */
const OPEN = ["queued", "sending"] as const

/**
 * The statuses of each channel (contracts 20, section 3, 40 and 41). Ranks, final states, events and
 * counters follow from these rows.
 */
const CHANNELS: Record<ChannelName, ChannelTable> = {
  email: {
    prefix: "email",
    statuses: {
      queued: { rank: 0 },
      sending: { rank: 1 },
      sent: { rank: 2 },
      delivered: { rank: 3 },
      failed: { rank: 4 },
      bounced: { rank: 5 },
      complained: { rank: 6 },
    },
    queued_told: "at_release",
  },
  push: {
    prefix: "push",
    statuses: {
      queued: { rank: 0 },
      sending: { rank: 1 },
      sent: { rank: 2 },
      delivered: { rank: 3 },
      expired: { rank: 3 },
      failed: { rank: 3, from: OPEN },
      cancelled: { rank: 3, from: ["queued"] },
    },
    queued_told: "at_release",
  },
  sms: {
    prefix: "sms",
    statuses: {
      queued: { rank: 0 },
      sending: { rank: 1 },
      sent: { rank: 2 },
      delivered: { rank: 3 },
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

/** Whether a message of the channel may move from one status to another. */
export function mayFollow(channel: ChannelName, next: Status, current: Status): boolean {
  const { statuses } = CHANNELS[channel]
  const row = statuses[next]
  const before = statuses[current]
  if (!row || !before || row.rank <= before.rank) return false
  return row.from === undefined || row.from.includes(current)
}

/** Whether messages of the channel can reach the status. */
export const knowsStatus = (channel: ChannelName, status: string): boolean =>
  Object.hasOwn(CHANNELS[channel].statuses, status)

/** The statuses of the channel, in the order of their ranks. */
export const statusesOf = (channel: ChannelName): Status[] =>
  Object.keys(CHANNELS[channel].statuses) as Status[]

/** The counters of what is settled in the channel: what is open is the difference to all. */
export const settledCounters = (channel: ChannelName): string[] =>
  statusesOf(channel).flatMap((status) => (isOpen(status) ? [] : [counterOf(channel, status)]))

/** The counter of a status. */
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

/** Whether a message that is scheduled tells `queued` already when it is accepted. */
export const tellsScheduled = (channel: ChannelName): boolean =>
  CHANNELS[channel].queued_told === "at_accept"
