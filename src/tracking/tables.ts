import type { MailClient } from "../lib/mail-client"
import { messages } from "../messages/tables"
import { id, int, json, primaryKey, ref, table, text, time } from "../store/columns"
import { life } from "../store/life"

/** What loaded the pixel or followed a link. */
export type HitActor = "human" | "machine" | "unknown"

/** One hit, as it is shown among the latest ones. */
export interface RecentHit extends MailClient {
  type: "open" | "click"
  /** ISO 8601. */
  timestamp: string
  url: string | null
  actor: HitActor
  /** By which hits of one visitor are told; it is not shown. */
  visitor: string
}

/** Counters of one message. A message without hits has no row. */
export const messageTracking = table("message_tracking", {
  message_id: id().references(() => messages.id, { onDelete: "cascade" }),
  open_total: int().notNull(),
  open_unique: int().notNull(),
  open_human: int().notNull(),
  open_machine: int().notNull(),
  open_first_at: time(),
  open_last_at: time(),
  /** The first and the last one of a person. */
  opened_at: time(),
  last_opened_at: time(),
  click_total: int().notNull(),
  click_unique: int().notNull(),
  click_human: int().notNull(),
  click_machine: int().notNull(),
  click_first_at: time(),
  click_last_at: time(),
  clicked_at: time(),
  last_clicked_at: time(),
  /** Hashes of people that are told apart, by the type of their hits. */
  visitors: json<Record<RecentHit["type"], string[]>>().notNull(),
  recent: json<RecentHit[]>().notNull(),
})
life(messageTracking, { owner: "project", ends: "with row", names: { message_id: "messages" } })

/** Counters of one link of a message. A link that was never followed has no row. */
export const trackingLinks = table(
  "tracking_links",
  {
    message_id: ref()
      .notNull()
      .references(() => messages.id, { onDelete: "cascade" }),
    /** A hash of the address, since an address is too long for a key. */
    link: text().notNull(),
    url: text().notNull(),
    total: int().notNull(),
    unique: int().notNull(),
    human: int().notNull(),
    last_at: time().notNull(),
    visitors: json<string[]>().notNull(),
  },
  (row) => [primaryKey({ columns: [row.message_id, row.link] })],
)
life(trackingLinks, { owner: "project", ends: "with row", names: { message_id: "messages" } })
