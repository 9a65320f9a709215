import { sql } from "drizzle-orm"
import { id, index, int, json, primaryKey, ref, table, text, time } from "./columns"

/**
 * Open work only: a finished job is deleted, its story is in `events`. `state` is 0 ready,
 * 1 leased, 2 dead, 3 held; a dead job stays visible with its reason, and a held one names the
 * pause that holds it as its owner.
 */
export const jobs = table(
  "jobs",
  {
    id: id(),
    name: text().notNull(),
    project_id: ref(),
    payload: json<unknown>().notNull(),
    state: int().notNull(),
    priority: int().notNull(),
    run_at: time().notNull(),
    attempt: int().notNull(),
    owner: text(),
    lease_until: time(),
    last_error: text(),
    created_at: time().notNull(),
    dead_at: time(),
  },
  (job) => [
    index("jobs_ready").on(job.priority, job.run_at, job.id).where(sql`state = 0`),
    index("jobs_leased").on(job.lease_until).where(sql`state = 1`),
    index("jobs_dead").on(job.dead_at).where(sql`state = 2`),
    index("jobs_held").on(job.owner, job.id).where(sql`state = 3`),
  ],
)

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
  name: id(),
  value: text().notNull(),
})
