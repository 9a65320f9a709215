import { int, key, primaryKey, ref, table, text } from "./columns"

/**
 * Totals for lists: `count(*)` costs more with every row, a counter never does. The shards keep
 * writers on Postgres from waiting for one row; a total is their sum.
 */
export const counters = table(
  "counters",
  {
    project_id: ref().notNull(),
    name: text().notNull(),
    shard: int().notNull(),
    value: int().notNull(),
  },
  (counter) => [primaryKey({ columns: [counter.project_id, counter.name, counter.shard] })],
)

/** One value of the instance itself, sealed where it is a secret. */
export const instanceValues = table("instance_values", {
  name: key(),
  value: text().notNull(),
})
