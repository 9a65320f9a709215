import { index, int, primaryKey, ref, table, text } from "../store/columns"

/** What each project used a day, in UTC. The shards keep writers on Postgres from waiting. */
export const usageDays = table(
  "usage_days",
  {
    account_id: ref().notNull(),
    project_id: ref().notNull(),
    /** `YYYY-MM-DD` */
    day: text().notNull(),
    metric: text().notNull(),
    shard: int().notNull(),
    value: int().notNull(),
  },
  (row) => [
    primaryKey({ columns: [row.account_id, row.day, row.project_id, row.metric, row.shard] }),
    index("usage_days_by_project").on(row.project_id, row.day),
  ],
)
