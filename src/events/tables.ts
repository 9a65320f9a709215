import { eventId, index, json, position, ref, table, text, time } from "../store/columns"
import { life } from "../store/life"

/** What the answer to a read of one message shows besides the event's public data. */
export interface EventDetail {
  smtp_code: number | null
  enhanced_code: string | null
  mx: string | null
  tls: string | null
  response: string | null
  /** Of a provider that has codes of its own. */
  provider_code?: string
  /** What the provider takes for the message, where it says so. */
  price?: { amount: string; currency: string }
}

/** Facts, immutable, in the order in which they became true. */
export const events = table(
  "events",
  {
    id: eventId(),
    position: position(),
    account_id: ref().notNull(),
    project_id: ref().notNull(),
    /** The message, domain or user the fact is about. */
    subject_id: ref(),
    type: text().notNull(),
    data: json<Record<string, unknown>>().notNull(),
    detail: json<EventDetail | null>(),
    created_at: time().notNull(),
  },
  (event) => [
    index("events_by_project").on(event.project_id, event.position, event.id),
    index("events_by_subject").on(event.subject_id, event.id),
  ],
)
life(events, {
  owner: "project",
  ends: "events_days",
  personal: { found_by: { subscriber_id: "subject_id" }, searched: ["data", "detail"] },
})
