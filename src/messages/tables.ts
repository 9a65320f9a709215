import { sql } from "drizzle-orm"
import { workColumns, workIndexes } from "../jobs/tables"
import type { WorkColumns } from "../jobs/work-item"
import type { AudienceChannel } from "../lib/preferences"
import {
  bool,
  bytes,
  id,
  index,
  int,
  json,
  primaryKey,
  ref,
  table,
  text,
  time,
} from "../store/columns"
import { life } from "../store/life"
import type { Envelope } from "./message-envelope"

export type {
  AttachmentRow,
  Envelope,
  EnvelopeDecision,
  LeftOut,
  PushEnvelope,
  TextEnvelope,
} from "./message-envelope"

export type ChannelName = AudienceChannel

/** Each channel knows some of them (`status-changes.ts`). No row has `sending`: answers give it to a queued message that is claimed. */
export type Status =
  | "queued"
  | "sending"
  | "sent"
  | "delivered"
  | "failed"
  | "bounced"
  | "complained"
  | "undelivered"
  | "expired"
  | "cancelled"
  /** Somebody sent it to us. */
  | "received"

export type Stream = "transactional" | "broadcast" | "auth"

/** One address of a message and what became of it. The first one decides the message's status. */
export interface Recipient {
  /**
   * The address in the words of its channel: an email address, a number in E.164, the id of a device or of
   * a subscriber. Rows keep it by this name.
   */
  email: string
  name: string | null
  kind: "to" | "cc" | "bcc"
  status: Status
  status_reason: string | null
}

export type Addressed = Pick<Recipient, "email">

interface MessageError {
  code: string
  message: string
  smtp_code: number | null
  enhanced_code: string | null
  /** The provider's own code. */
  provider_code?: string
}

/**
 * Small and hot: what lists and the pipeline need. One table serves every channel. A message is its own
 * job: while it waits, its work columns say for what. `status` says "queued" until an attempt has
 * ended; whether it is being sent, only its claim says (`message-list.ts`).
 */
export const messages = table(
  "messages",
  {
    id: id(),
    account_id: ref().notNull(),
    project_id: ref().notNull(),
    channel: text<ChannelName>().notNull(),
    status: text<Status>().notNull(),
    status_reason: text(),
    /** In the form in which addresses compare: lower case, A-label domain. */
    address: text().notNull(),
    /** The address or number that it is from; of a push message the platform of its device. */
    sender: text(),
    sender_domain: text(),
    subject: text(),
    /** As it is searched: SQLite lower-cases ASCII only. */
    subject_key: text(),
    recipients: json<Recipient[]>().notNull(),
    /** What it counts in the quota; null: one a recipient. */
    units: int(),
    envelope: json<Envelope | null>(),
    batch_id: ref(),
    stream: text<Stream>().notNull(),
    source: text().notNull(),
    tags: json<string[]>().notNull(),
    metadata: json<Record<string, unknown>>().notNull(),
    api_key_id: ref(),
    idempotency_key: text(),
    rfc_message_id: text(),
    /** The first message or received mail of the conversation; null where that is the message itself. */
    thread_id: ref(),
    sandbox: bool().notNull(),
    provider: text(),
    priority: int().notNull(),
    ...workColumns(),
    /** The moment that the sender asked for; `run_at` may be later. Null: as soon as possible. */
    scheduled_at: time(),
    template_id: ref(),
    subscriber_id: ref(),
    /** Whose device a push message is for. */
    user_id: text(),
    category: text(),
    /** The publish or other intent that it is one of many messages of. */
    fan_out_id: ref(),
    /** What it takes of the bytes that its project stores: 0 once its content went, null of an earlier version. */
    stored_bytes: int(),
    error: json<MessageError | null>(),
    last_event_type: text(),
    last_event_at: time(),
    sent_at: time(),
    delivered_at: time(),
    bounced_at: time(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (message) => [
    index("messages_by_project").on(message.project_id, message.channel, message.id),
    index("messages_by_status").on(message.project_id, message.status, message.id),
    index("messages_by_recipient").on(message.project_id, message.address, message.id),
    // Of every other source, the Message-ID begins with the id.
    index("messages_by_message_id")
      .on(message.project_id, message.rfc_message_id)
      .where(sql`source = 'smtp'`),
    index("messages_scheduled")
      .on(message.project_id, message.id)
      .where(sql`scheduled_at IS NOT NULL`),
    index("messages_by_template")
      .on(message.project_id, message.template_id, message.id)
      .where(sql`template_id IS NOT NULL`),
    index("messages_by_subscriber")
      .on(message.project_id, message.subscriber_id, message.id)
      .where(sql`subscriber_id IS NOT NULL`),
    index("messages_by_user")
      .on(message.project_id, message.user_id, message.id)
      .where(sql`user_id IS NOT NULL`),
    index("messages_by_fan_out")
      .on(message.project_id, message.fan_out_id, message.id)
      .where(sql`fan_out_id IS NOT NULL`),
    ...workIndexes("messages", message, message.priority),
    index("messages_held_until")
      .on(message.lease_until)
      .where(sql`state = 3 AND lease_until IS NOT NULL`),
  ],
)
life(messages, {
  owner: "project",
  ends: "messages_days",
  personal: {
    found_by: {
      ...{ subscriber_id: "subscriber_id", address: "address", phone: "address" },
      external_id: "user_id",
    },
    searched: ["recipients", "envelope", "metadata"],
  },
})

/** A message on its way in: complete but for what every new message has in common. */
export interface NewMessage
  extends Omit<
      typeof messages.$inferSelect,
      | "status"
      | "subject_key"
      | "status_reason"
      | "provider"
      | "priority"
      | keyof WorkColumns
      | "stored_bytes"
      | "error"
      | "last_event_type"
      | "last_event_at"
      | "sent_at"
      | "delivered_at"
      | "bounced_at"
      | "updated_at"
      | keyof SomeMessages
    >,
    Partial<SomeMessages> {
  content: unknown
  /** The country prefix (`+43`) whose sends of an hour are limited; absent where they are not. */
  country?: string | undefined
  /** It is accepted, and ends at once: its recipient wants or may get no such message. */
  refused?: MessageRefusal
  /** It came in: its address is the person, its sender the number of ours. */
  received?: ReceivedMessage
  /** Nothing is left to send: it is delivered where it is accepted, and its channel keeps its content. */
  delivered?: DeliveredMessage
}

/** The subscriber's name in the project, and what the channel keeps of the message in the same transaction. */
export type DeliveredMessage = { external_id: string; kept: unknown }

/** What the event of a message that came in says beside its row. */
export interface ReceivedMessage {
  /** The name of the provider by which it came. */
  provider: string
  segments: number
  body: string
  in_reply_to: string | null
}

/** Why a message ends as `failed` where it is accepted. */
export interface MessageRefusal {
  /** The status reason, and the code of its error. */
  reason: string
  text: string
}

type SomeMessages = Pick<
  typeof messages.$inferSelect,
  "units" | "scheduled_at" | "template_id" | "subscriber_id" | "user_id" | "category" | "fan_out_id"
>

/** Cold: written once, read once by the channel that delivers. Texts above 512 KB are a file that it names. */
export const messageContents = table("message_contents", {
  message_id: id().references(() => messages.id, { onDelete: "cascade" }),
  content: json<unknown>().notNull(),
})
life(messageContents, {
  owner: "project",
  ends: "bodies_days",
  names: { message_id: "messages" },
  sealed: {
    content: {
      what: "mail of the instance itself, and codes and links of end users, that wait",
      remedy: "ask for them again, for example with `belfry password forgot`",
      drop: "row",
    },
  },
})

/** What makes the very bytes again that were handed over first (`emails/recipe.ts`). */
export const messageRaws = table("message_raws", {
  message_id: id().references(() => messages.id, { onDelete: "cascade" }),
  raw: bytes().notNull(),
})
life(messageRaws, { owner: "project", ends: "bodies_days", names: { message_id: "messages" } })

/** The files of messages and caught mails, which share them: one that no row names any more is removed. */
export const messageFiles = table(
  "message_files",
  {
    message_id: ref().notNull(),
    sha256: text().notNull(),
  },
  (file) => [
    primaryKey({ columns: [file.message_id, file.sha256] }),
    index("message_files_by_name").on(file.sha256),
  ],
)
life(messageFiles, {
  owner: "project",
  ends: "bodies_days",
  names: { message_id: ["messages", "mailbox_mails"] },
})

/**
 * Messages by the day (UTC) on which they were accepted, by what became of them, and the provider that was asked
 * last. Only channels whose statistics are read have them. The shards keep writers on Postgres from waiting.
 */
export const messageDays = table(
  "message_days",
  {
    project_id: ref().notNull(),
    channel: text<ChannelName>().notNull(),
    /** `YYYY-MM-DD` */
    day: text().notNull(),
    status: text<Status>().notNull(),
    /** Empty where none was asked. */
    provider: text().notNull(),
    shard: int().notNull(),
    messages: int().notNull(),
    units: int().notNull(),
  },
  (row) => [
    primaryKey({
      columns: [row.project_id, row.channel, row.day, row.status, row.provider, row.shard],
    }),
    index("message_days_by_day").on(row.day),
  ],
)
life(messageDays, { owner: "project", ends: "after 3 years" })

/** For the filter by tag, which must not search inside JSON. */
export const messageTags = table(
  "message_tags",
  {
    project_id: ref().notNull(),
    tag: text().notNull(),
    message_id: ref().notNull(),
  },
  (tag) => [primaryKey({ columns: [tag.project_id, tag.tag, tag.message_id] })],
)
life(messageTags, { owner: "project", ends: "with row", names: { message_id: "messages" } })

/** One try at handing a message over, with the server's own words. */
export const attempts = table(
  "attempts",
  {
    message_id: ref().notNull(),
    attempt: int().notNull(),
    provider: text().notNull(),
    started_at: time().notNull(),
    duration_ms: int().notNull(),
    outcome: text().notNull(),
    mx: text(),
    tls: text(),
    smtp_code: int(),
    enhanced_code: text(),
    response: text(),
    transcript: json<string[]>().notNull(),
  },
  (attempt) => [primaryKey({ columns: [attempt.message_id, attempt.attempt] })],
)
life(attempts, { owner: "project", ends: "with row", names: { message_id: "messages" } })

/** What all messages of a fan-out say, once for each channel and language (`contents.ts`). */
export const fanOutContents = table(
  "fan_out_contents",
  {
    fan_out_id: ref().notNull(),
    /** The channel, and behind a colon the language where there are several. */
    name: text().notNull(),
    content: json<unknown>().notNull(),
  },
  (row) => [primaryKey({ columns: [row.fan_out_id, row.name] })],
)
life(fanOutContents, { owner: "project", ends: "bodies_days", names: { fan_out_id: "fan_outs" } })
