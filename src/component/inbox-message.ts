/** A message of the inbox as its subscriber sees it. */
export interface InboxMessage {
  id: string
  /** Grows by one with each change of the inbox; the newest change of a message is its own. */
  seq: number
  subscriber_id: string
  title: string
  body: string | null
  action_url: string | null
  action_label: string | null
  actions: InboxAction[]
  icon: string | null
  image_url: string | null
  category: string | null
  priority: "low" | "normal" | "high" | "urgent"
  data: Record<string, unknown>
  tags: string[]
  collapse_key: string | null
  seen_at: string | null
  read_at: string | null
  archived_at: string | null
  snoozed_until: string | null
  expires_at: string | null
  created_at: string
  updated_at: string
}

export interface InboxAction {
  key: string
  label: string
  url: string | null
  style: string | null
  completed_at: string | null
}

export interface InboxCounts {
  unread: number
  unseen: number
  total: number
  /** Of each category that has some: how many are unread. */
  by_category: Record<string, number>
}

/** Which messages are shown: without a filter all but the archived ones. */
export interface InboxView {
  filter?: "all" | "unread" | "archived" | "snoozed"
  category?: string
  tag?: string
}

/** `ended`: the server refuses the token, and it cannot be renewed. */
export type InboxState = "idle" | "connecting" | "live" | "polling" | "offline" | "ended"

export type InboxMark = "read" | "unread" | "seen" | "archived" | "unarchived"

/** What a subscriber chose to receive. */
export interface InboxPreferences {
  email: InboxChannelChoice
  push: InboxChannelChoice
  sms: InboxChannelChoice
  in_app: InboxChannelChoice
  topics: Record<string, Partial<Record<"email" | "push" | "sms" | "in_app", boolean>>>
  [other: string]: unknown
}

interface InboxChannelChoice {
  enabled: boolean
  categories: Record<string, boolean>
}
