/** What a person can be reached by, as names on the wire. */
export const AUDIENCE_CHANNELS = ["email", "push", "sms", "in_app"] as const

export type AudienceChannel = (typeof AUDIENCE_CHANNELS)[number]

/** The channels whose messages leave the server. Quiet hours and times are for them: an inbox makes no noise. */
export const OUTGOING_CHANNELS = ["email", "push", "sms"] as const

/** A value for each channel. */
export const byChannel = <Value>(make: (channel: AudienceChannel) => Value) =>
  Object.fromEntries(AUDIENCE_CHANNELS.map((channel) => [channel, make(channel)])) as Record<
    AudienceChannel,
    Value
  >

export const isOutgoing = (
  channel: AudienceChannel,
): channel is (typeof OUTGOING_CHANNELS)[number] =>
  (OUTGOING_CHANNELS as readonly string[]).includes(channel)

/** What one channel may bring. An entry that is absent was never chosen. */
type ChannelPreferences = {
  enabled?: boolean
  /** By slug. */
  categories?: Record<string, boolean>
}

/** Hours of the day in which nothing is sent. They may go over midnight. */
export interface QuietHours {
  enabled: boolean
  /** As in `22:00`. */
  start: string
  /** The first minute after them. */
  end: string
  /** An IANA zone; null: that of the subscriber, else that of the project. */
  timezone: string | null
  channels: (typeof OUTGOING_CHANNELS)[number][]
}

/** What a subscriber, or a project for all of them, has chosen (contract 43, section 2). */
export interface ChosenPreferences extends Partial<Record<AudienceChannel, ChannelPreferences>> {
  /** By topic key. */
  topics?: Record<string, Partial<Record<AudienceChannel, boolean>>>
  /** By workflow key. */
  workflows?: Record<string, boolean>
  /** Null or absent: those of the project. */
  quiet_hours?: QuietHours | null
}

/** At most `count` messages per subscriber, channel and category within the last `per_seconds`. */
export interface FrequencyCap {
  count: number
  per_seconds: number
}

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** A zone changes its clock once in the length of a day, or twice in a bad year. */
const MOST_CHANGES = 4

const TIME_OF_DAY = /^([01]\d|2[0-3]):([0-5]\d)$/

/** Whether the text is a time of day, such as `22:00`. */
export const isTimeOfDay = (text: string): boolean => TIME_OF_DAY.test(text)

/**
 * The first moment from `at` on at which a clock on the wall of the zone shows a time outside of the
 * quiet hours; `at` itself where it does so already. Both are epoch milliseconds. Start is the first
 * quiet minute and end the first one after them, so `22:00` to `08:00` goes over midnight. The clock on
 * the wall alone decides: an hour that it skips is never quiet, and one that it shows twice is quiet
 * both times.
 */
export function quietUntil(at: number, { start, end }: DailyWindow, zone: string): number {
  const from = millisOfDay(start)
  const length = modulo(millisOfDay(end) - from)
  let moment = at
  for (let change = 0; change <= MOST_CHANGES; change++) {
    const offset = offsetOf(zone, moment)
    const elapsed = modulo(moment + offset - from)
    if (elapsed >= length) return moment
    const ends = moment + length - elapsed
    if (offsetOf(zone, ends) === offset) return ends
    moment = changeBetween(zone, moment, ends)
  }
  return moment
}

type DailyWindow = Pick<QuietHours, "start" | "end">

const millisOfDay = (time: string): number => {
  const [, hours, minutes] = TIME_OF_DAY.exec(time) ?? []
  return (Number(hours) * 60 + Number(minutes)) * MINUTE
}

const modulo = (millis: number): number => ((millis % DAY) + DAY) % DAY

/** The first moment after `before` with another offset, which `after` has. */
function changeBetween(zone: string, before: number, after: number): number {
  const offset = offsetOf(zone, before)
  let [low, high] = [Math.floor(before / MINUTE), Math.ceil(after / MINUTE)] // clocks change at full minutes
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (offsetOf(zone, middle * MINUTE) === offset) low = middle
    else high = middle
  }
  return high * MINUTE
}

interface ZoneClock {
  format: Intl.DateTimeFormat
  /** The minute of the latest answer. Many recipients of one message ask about the same one. */
  minute: number
  offset: number
}

/** There are about 600 names of zones. */
const clocks = new Map<string, ZoneClock>()

/** `GMT` alone says that there is none. */
const OFFSET = /GMT([+-])(\d\d):(\d\d)$/

/** By how many milliseconds the clock on the wall of an IANA zone is ahead of UTC. */
function offsetOf(zone: string, at: number): number {
  const clock = clocks.get(zone) ?? newClock(zone)
  const minute = Math.floor(at / MINUTE)
  if (clock.minute === minute) return clock.offset
  const [, sign, hours = 0, minutes = 0] = OFFSET.exec(clock.format.format(minute * MINUTE)) ?? []
  const ahead = (Number(hours) * 60 + Number(minutes)) * MINUTE
  clock.minute = minute
  clock.offset = sign === "-" ? -ahead : ahead
  return clock.offset
}

function newClock(zone: string): ZoneClock {
  const format = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" })
  const clock = { format, minute: Number.NaN, offset: 0 }
  clocks.set(zone, clock)
  return clock
}
