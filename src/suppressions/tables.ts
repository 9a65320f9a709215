import { sql } from "drizzle-orm"
import { id, index, primaryKey, ref, table, text, time, uniqueIndex } from "../store/columns"
import { life } from "../store/life"

/** The channels whose addresses can be suppressed. */
export const SUPPRESSED_CHANNELS = ["email", "sms"] as const

export type SuppressionChannel = (typeof SUPPRESSED_CHANNELS)[number]

export const SUPPRESSION_REASONS = ["bounce", "complaint", "unsubscribe", "manual"] as const

export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number]

export const SUPPRESSION_ORIGINS = ["event", "api", "console", "import", "page"] as const

export type SuppressionOrigin = (typeof SUPPRESSION_ORIGINS)[number]

export const SCOPE_TYPES = ["project", "topic", "category", "broadcast"] as const

export type SuppressionScopeType = (typeof SCOPE_TYPES)[number]

/** Addresses that a project sends nothing to: at all, or nothing of one kind. */
export const suppressions = table(
  "suppressions",
  {
    id: id(),
    project_id: ref().notNull(),
    channel: text<SuppressionChannel>().notNull(),
    /** In the form in which addresses compare; a phone number in E.164. */
    address: text().notNull(),
    reason: text<SuppressionReason>().notNull(),
    origin: text<SuppressionOrigin>().notNull(),
    scope_type: text<SuppressionScopeType>().notNull(),
    /** Of a category or topic; "" for a scope without a key, because NULLs are never equal. */
    scope_key: text().notNull(),
    /** The message whose bounce or complaint it was. */
    source_message_id: ref(),
    /** The reply that caused it. */
    diagnostic: text(),
    note: text(),
    /** Null: it holds until it is removed. */
    expires_at: time(),
    created_at: time().notNull(),
  },
  (suppression) => [
    uniqueIndex("suppressions_by_address").on(
      suppression.project_id,
      suppression.channel,
      suppression.address,
      suppression.scope_type,
      suppression.scope_key,
    ),
    index("suppressions_by_project").on(suppression.project_id, suppression.id),
    index("suppressions_by_reason").on(suppression.project_id, suppression.reason, suppression.id),
    index("suppressions_by_origin").on(suppression.project_id, suppression.origin, suppression.id),
    index("suppressions_by_channel").on(
      suppression.project_id,
      suppression.channel,
      suppression.id,
    ),
    index("suppressions_by_expiry").on(suppression.expires_at).where(sql`expires_at is not null`),
  ],
)
life(suppressions, {
  owner: "project",
  ends: "after their own end",
  personal: { found_by: { address: "address", phone: "address" } },
  counts: { name: "suppressions", by: ["channel", "reason", "origin"] },
})

export type SuppressionRow = typeof suppressions.$inferSelect

/** Messages that were given up after soft failures only. A few of them suppress the address for a while. */
export const softFailures = table(
  "soft_failures",
  {
    project_id: ref().notNull(),
    channel: text<SuppressionChannel>().notNull(),
    address: text().notNull(),
    message_id: ref().notNull(),
    created_at: time().notNull(),
  },
  (failure) => [
    primaryKey({
      columns: [failure.project_id, failure.channel, failure.address, failure.message_id],
    }),
    index("soft_failures_by_time").on(failure.created_at),
  ],
)
life(softFailures, { owner: "project", ends: "after 7 days" })

/** Permanent refusals that name nothing. The second one of an address suppresses it, if it comes a day later. */
export const generalBounces = table(
  "general_bounces",
  {
    project_id: ref().notNull(),
    address: text().notNull(),
    first_at: time().notNull(),
    latest_at: time().notNull(),
  },
  (bounce) => [
    primaryKey({ columns: [bounce.project_id, bounce.address] }),
    index("general_bounces_by_time").on(bounce.latest_at),
  ],
)
life(generalBounces, { owner: "project", ends: "after 7 days" })
