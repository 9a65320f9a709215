import { sql } from "drizzle-orm"
import {
  id,
  index,
  int,
  json,
  position,
  primaryKey,
  ref,
  table,
  text,
  time,
} from "../store/columns"
import { life } from "../store/life"

export const PRIORITY_WORDS = ["normal", "low", "high", "urgent"] as const

export interface StoredAction {
  key: string
  label: string
  url: string | null
  style: string | null
}

/** What an inbox message says to its subscriber. */
export interface InboxContent {
  title: string
  body: string | null
  action_url: string | null
  action_label: string | null
  actions: StoredAction[]
  icon: string | null
  image_url: string | null
  priority: (typeof PRIORITY_WORDS)[number]
  data: Record<string, unknown>
}

/**
 * The content of one message, under the id of that message; or of all messages of one send or publish that say the
 * same, under an id of its own.
 */
export const inboxContents = table(
  "inbox_contents",
  {
    id: id(),
    project_id: ref().notNull(),
    content: json<InboxContent>().notNull(),
  },
  (row) => [index("inbox_contents_by_project").on(row.project_id, row.id)],
)
life(inboxContents, {
  owner: "project",
  ends: "messages_days",
  names: { id: "messages" },
  late: true,
  personal: { searched: ["content"] },
})

/** The state of each message in its inbox, beside its row in `messages`, under the same id. */
export const inboxEntries = table(
  "inbox_entries",
  {
    id: id(),
    project_id: ref().notNull(),
    subscriber_id: ref().notNull(),
    content_id: ref().notNull(),
    /** Of its last change. Messages that changed together have the same. */
    seq: int().notNull(),
    category: text(),
    collapse_key: text(),
    seen_at: time(),
    read_at: time(),
    archived_at: time(),
    snoozed_until: time(),
    expires_at: time(),
    /** The first of `snoozed_until` and `expires_at`. */
    wakes_at: time(),
    /** When each of its actions was used, by key. */
    completed: json<Record<string, string> | null>(),
    /** The events that were told of it, as a sum of `TOLD`: each is told once. */
    told: int().notNull(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (entry) => [
    index("inbox_entries_in_sight")
      .on(entry.subscriber_id, entry.id)
      .where(sql`archived_at IS NULL AND snoozed_until IS NULL`),
    index("inbox_entries_unread")
      .on(entry.subscriber_id, entry.id)
      .where(sql`read_at IS NULL AND archived_at IS NULL AND snoozed_until IS NULL`),
    index("inbox_entries_unread_aside")
      .on(entry.subscriber_id, entry.id)
      .where(sql`read_at IS NULL AND (archived_at IS NOT NULL OR snoozed_until IS NOT NULL)`),
    index("inbox_entries_archived")
      .on(entry.subscriber_id, entry.id)
      .where(sql`archived_at IS NOT NULL`),
    index("inbox_entries_snoozed")
      .on(entry.subscriber_id, entry.id)
      .where(sql`snoozed_until IS NOT NULL`),
    index("inbox_entries_by_key")
      .on(entry.subscriber_id, entry.collapse_key, entry.id)
      .where(sql`collapse_key IS NOT NULL AND read_at IS NULL`),
    index("inbox_entries_by_content").on(entry.content_id),
    index("inbox_entries_waking").on(entry.wakes_at).where(sql`wakes_at IS NOT NULL`),
  ],
)
export type InboxEntry = typeof inboxEntries.$inferSelect
life(inboxEntries, { owner: "project", ends: "with row", names: { id: "messages" } })

/** The totals of each inbox, and the number of its last change. */
export const inboxes = table("inboxes", {
  id: id(), // of the subscriber
  project_id: ref().notNull(),
  last_seq: int().notNull(),
  unread: int().notNull(),
  unseen: int().notNull(),
  total: int().notNull(),
})
life(inboxes, { owner: "project", ends: "with row", names: { id: "subscribers" }, late: true })

/** Unread messages of an inbox by category. A writer holds the row of the inbox, so there is one shard. */
export const inboxCategories = table(
  "inbox_categories",
  {
    subscriber_id: ref().notNull(),
    category: text().notNull(),
    shard: int().notNull(),
    unread: int().notNull(),
  },
  (row) => [primaryKey({ columns: [row.subscriber_id, row.category, row.shard] })],
)
life(inboxCategories, {
  owner: "project",
  ends: "with row",
  names: { subscriber_id: "subscribers" },
  late: true,
})

export type InboxChangeKind = "created" | "updated" | "deleted" | BulkKind

/** What a change of all messages at once does to each. */
export type BulkKind = "read" | "seen" | "archived"

/** Which messages a change of all at once concerns, beside those with a smaller number. */
export interface BulkScope {
  category?: string
  /** Only those that were created before. */
  before?: string
  /** Only those that are read. */
  read_only?: true
}

/** Every change of an inbox of the last days, for clients that come back. */
export const inboxChanges = table(
  "inbox_changes",
  {
    subscriber_id: ref().notNull(),
    seq: int().notNull(),
    position: position(),
    project_id: ref().notNull(),
    kind: text<InboxChangeKind>().notNull(),
    /** The message; null where it concerns many. */
    entry_id: ref(),
    scope: json<BulkScope | null>(),
    created_at: time().notNull(),
  },
  (change) => [
    primaryKey({ columns: [change.subscriber_id, change.seq] }),
    index("inbox_changes_by_position").on(change.position),
    index("inbox_changes_by_time").on(change.created_at),
  ],
)
life(inboxChanges, {
  owner: "project",
  ends: "after 7 days",
  names: { subscriber_id: "subscribers" },
  late: true,
})

/** Inbox messages by the day (UTC) on which they were created, seen, read or archived first. */
export const inboxDays = table(
  "inbox_days",
  {
    project_id: ref().notNull(),
    /** `YYYY-MM-DD` */
    day: text().notNull(),
    fact: text<"created" | "seen" | "read" | "archived">().notNull(),
    shard: int().notNull(),
    messages: int().notNull(),
  },
  (row) => [
    primaryKey({ columns: [row.project_id, row.day, row.fact, row.shard] }),
    index("inbox_days_by_day").on(row.day),
  ],
)
life(inboxDays, { owner: "project", ends: "after 3 years" })

/** What opens one socket within a minute. */
export const inboxTickets = table(
  "inbox_tickets",
  {
    /** SHA-256 of the ticket. */
    id: text().primaryKey(),
    project_id: ref().notNull(),
    subscriber_id: ref().notNull(),
    /** The session of the end user that asked for it, if one did. */
    session_id: ref(),
    /** The end of the token that asked for it: the socket ends then, too. */
    token_ends_at: time().notNull(),
    expires_at: time().notNull(),
  },
  (ticket) => [index("inbox_tickets_by_end").on(ticket.expires_at)],
)
life(inboxTickets, { owner: "project", ends: "after a minute" })
