import type { AudienceChannel } from "../lib/preferences"
import { int, primaryKey, ref, table, text } from "../store/columns"
import { life } from "../store/life"

/** What is counted against a monthly limit. */
export type Metric = AudienceChannel | "mau"

/** What one month of one limit has used up. A row exists only where there is a limit. */
export const quotas = table(
  "quotas",
  {
    /** An account, or `user:<id>` for all free accounts of one person. */
    subject: text().notNull(),
    /** `YYYY-MM`, in UTC. */
    period: text().notNull(),
    metric: text<Metric>().notNull(),
    used: int().notNull(),
    /** The highest share in percent that owners were told of. */
    alerted: int().notNull(),
  },
  (row) => [primaryKey({ columns: [row.subject, row.period, row.metric] })],
)
life(quotas, { owner: "account", ends: "after 3 years" })

/** When a project's sends of a channel have drained, if nothing more comes: one row a bucket. */
export const sendBuckets = table(
  "send_buckets",
  {
    project_id: ref().notNull(),
    channel: text().notNull(),
    /** Epoch microseconds. */
    drained: int().notNull(),
  },
  (row) => [primaryKey({ columns: [row.project_id, row.channel] })],
)
life(sendBuckets, { owner: "project", ends: "never" })
