import { int, primaryKey, ref, table, text } from "../store/columns"

/** What one month of one limit has used up. A row exists only where there is a limit. */
export const quotas = table(
  "quotas",
  {
    /** An account, or `user:<id>` for all free accounts of one person. */
    subject: ref().notNull(),
    /** `YYYY-MM`, in UTC. */
    period: text().notNull(),
    metric: text().notNull(),
    used: int().notNull(),
    /** The highest share in percent that owners were told of. */
    alerted: int().notNull(),
  },
  (row) => [primaryKey({ columns: [row.subject, row.period, row.metric] })],
)
