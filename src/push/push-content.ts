/** For a device without another time: four weeks, which is the most. */
export const LONGEST_TTL_SECONDS = 2_419_200

export interface ActionButton {
  id: string
  label: string
  url?: string
}

/** What a push message says, as it is stored: rendered, without what the device itself decides. */
export interface PushContent {
  title?: string
  body?: string
  data?: Record<string, string>
  image_url?: string
  icon?: string
  /** `unread`: the unread messages in the inbox of the subscriber, when it leaves. */
  badge?: number | "unread"
  sound?: string
  url?: string
  content_available?: true
  action_buttons?: ActionButton[]
  collapse_id?: string
  priority: "high" | "normal"
  /** Overrides of each provider: merged into what is built for it. */
  apns?: Record<string, unknown>
  fcm?: Record<string, unknown>
  webpush?: Record<string, unknown>
}

/** What is built for a device: the content, and by what the device acknowledges. */
export interface BuiltFrom {
  push_id: string
  ack_token: string
  content: PushContent
  /** Null: the badge stays as it is. */
  badge: number | null
}

/** Bytes of what is built for a provider. */
export const MOST_PAYLOAD_BYTES = 4096

/** Names in `data` that are Belfry's own. */
export const RESERVED_DATA = ["push_id", "ack_token", "_ack"] as const

/** `data` as the app gets it. */
export const dataOf = ({ push_id, ack_token, content }: BuiltFrom): Record<string, string> => ({
  ...content.data,
  push_id,
  ack_token,
})
