import {
  AUDIENCE_CHANNELS,
  type AudienceChannel,
  type ChannelPreferences,
  type ChosenPreferences,
  type QuietHours,
} from "../lib/preferences"
import { SUBSCRIBER_STATUSES, type SubscriberStatus } from "./tables"

/**
 * What two people allow both, where they turn out to be one. A no of either one stays. A yes stays only
 * where both said it, because an entry that is absent may mean no.
 */
export function stricterPreferences(
  one: ChosenPreferences | null,
  other: ChosenPreferences | null,
): ChosenPreferences | null {
  if (one === null && other === null) return null
  const [first, second] = [one ?? {}, other ?? {}]
  const channels = AUDIENCE_CHANNELS.flatMap((channel): [AudienceChannel, ChannelPreferences][] => {
    const both = stricterChannel(first[channel], second[channel])
    return both === undefined ? [] : [[channel, both]]
  })
  const topics = joined(first.topics, second.topics, stricterEntries)
  const workflows = stricterEntries(first.workflows, second.workflows)
  const quiet_hours = quieter(first.quiet_hours ?? null, second.quiet_hours ?? null)
  return {
    ...Object.fromEntries(channels),
    ...(topics && { topics }),
    ...(workflows && { workflows }),
    ...(quiet_hours && { quiet_hours }),
  }
}

function stricterChannel(
  one: ChannelPreferences | undefined,
  other: ChannelPreferences | undefined,
): ChannelPreferences | undefined {
  const enabled = stricterValue(one?.enabled, other?.enabled)
  const categories = stricterEntries(one?.categories, other?.categories)
  if (enabled === undefined && categories === undefined) return undefined
  return { ...(enabled !== undefined && { enabled }), ...(categories && { categories }) }
}

const stricterValue = (one: boolean | undefined, other: boolean | undefined) =>
  one === false || other === false ? false : one === true && other === true ? true : undefined

type Entries = Partial<Record<string, boolean>>

const stricterEntries = (one: Entries | undefined, other: Entries | undefined) =>
  joined(one, other, stricterValue)

/** By key; a key whose value is undefined is left out, and so is what has no key. */
function joined<Value>(
  one: Partial<Record<string, Value>> | undefined,
  other: Partial<Record<string, Value>> | undefined,
  join: (a: Value | undefined, b: Value | undefined) => Value | undefined,
): Record<string, Value> | undefined {
  const [first, second] = [new Map(Object.entries(one ?? {})), new Map(Object.entries(other ?? {}))]
  const entries = [...new Set([...first.keys(), ...second.keys()])].flatMap(
    (key): [string, Value][] => {
      const value = join(first.get(key), second.get(key))
      return value === undefined ? [] : [[key, value]]
    },
  )
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/** Own hours that are off end those of the project, so hours that are on, or none at all, are stricter. */
function quieter(one: QuietHours | null, other: QuietHours | null): QuietHours | null {
  const on = [one, other].filter((hours): hours is QuietHours => hours?.enabled === true)
  const [first, second] = on
  if (first === undefined) return one === null || other === null ? null : one
  if (second === undefined) return first
  const longer = minutesIn(second) > minutesIn(first) ? second : first
  return { ...longer, channels: [...new Set([...first.channels, ...second.channels])] }
}

const DAY_MINUTES = 1440

function minutesIn({ start, end }: QuietHours): number {
  const minutes = minuteOf(end) - minuteOf(start)
  return minutes < 0 ? minutes + DAY_MINUTES : minutes
}

function minuteOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(":").map(Number)
  return hours * 60 + minutes
}

/** The status under which less is sent. */
export const stricterStatus = (one: SubscriberStatus, other: SubscriberStatus): SubscriberStatus =>
  SUBSCRIBER_STATUSES.indexOf(one) > SUBSCRIBER_STATUSES.indexOf(other) ? one : other
