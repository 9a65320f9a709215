import { sql } from "drizzle-orm"
import type { ReputationCounts } from "../identity/account-reputation"
import {
  id,
  index,
  int,
  json,
  primaryKey,
  ref,
  table,
  text,
  time,
  uniqueIndex,
} from "../store/columns"
import { life } from "../store/life"

/** By what is counted: all mail of a project (its name is empty), a sender domain, a tag, a template. */
export type Dimension = "project" | "domain" | "tag" | "template"

/**
 * Emails by recipient, in the hour in which they were sent: a later bounce or complaint joins the
 * hour of its email. The shards keep writers on Postgres from waiting for one row.
 */
export const reputationHours = table(
  "reputation_hours",
  {
    account_id: ref().notNull(),
    dimension: text<Dimension>().notNull(),
    name: text().notNull(),
    /** Hours since 1970. */
    hour: int().notNull(),
    project_id: ref().notNull(),
    shard: int().notNull(),
    sent: int().notNull(),
    delivered: int().notNull(),
    bounced: int().notNull(),
    complained: int().notNull(),
  },
  (row) => [
    primaryKey({
      columns: [row.account_id, row.dimension, row.name, row.hour, row.project_id, row.shard],
    }),
    index("reputation_hours_by_hour").on(row.hour, row.account_id),
    index("reputation_hours_complained").on(row.account_id, row.hour).where(sql`complained > 0`),
  ],
)
life(reputationHours, { owner: "project", ends: "after 30 days" })

/** Tags and templates that complaints held; of those that were released, where their window begins. */
export const complaintHolds = table(
  "complaint_holds",
  {
    id: id(),
    account_id: ref().notNull(),
    project_id: ref().notNull(),
    dimension: text<"tag" | "template">().notNull(),
    name: text().notNull(),
    /** Null while it is released. */
    held_at: time(),
    complaint_rate: json<number>().notNull(),
    window_start: time(),
    /** What was counted before the start in its hour. */
    base: json<ReputationCounts | null>(),
    updated_at: time().notNull(),
  },
  (hold) => [
    uniqueIndex("complaint_holds_by_name").on(hold.project_id, hold.dimension, hold.name),
    index("complaint_holds_by_account").on(hold.account_id),
  ],
)
life(complaintHolds, { owner: "project", ends: "after 30 days after the release", late: true })
