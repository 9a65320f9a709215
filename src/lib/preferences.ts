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
export type ChannelPreferences = {
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
