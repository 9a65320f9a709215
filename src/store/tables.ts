import { int, key, primaryKey, ref, table, text } from "./columns"
import { life } from "./life"

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
life(counters, { owner: "project", ends: "never", names: { project_id: ["accounts", "fan_outs"] } })

/** One value of the instance itself, sealed where it is a secret. */
export const instanceValues = table("instance_values", {
  name: key(),
  value: text().notNull(),
})
life(instanceValues, {
  owner: "instance",
  ends: "never",
  sealed: {
    value: {
      what: "keys of the instance: access tokens, setup, the local API key, links in mail",
      remedy: "people sign in again; `belfry up --new-key` makes another local key",
      drop: "row",
      plain_too: true,
    },
  },
})
