import { sql } from "drizzle-orm"
import { id, index, int, json, key, ref, table, text, time } from "../store/columns"
import { life } from "../store/life"

type Indexed = Parameters<ReturnType<typeof index>["on"]>[0]

/** The columns of work that waits, for a table's declaration. `work-item.ts` has the states. */
export const workColumns = () => ({
  state: int().notNull(),
  /** When it is due. Of dead work: when it died. */
  run_at: time().notNull(),
  attempt: int().notNull(),
  owner: text(),
  lease_until: time(),
})

/** The indexes that the engine walks. `partition` is what `WorkRows` is given for the same table. */
export const workIndexes = (
  name: string,
  row: Record<"id" | "run_at" | "owner" | "lease_until", Indexed>,
  partition: Indexed,
) => [
  index(`${name}_ready`).on(partition, row.run_at, row.id).where(sql`state = 0`),
  index(`${name}_leased`).on(row.lease_until).where(sql`state = 1`),
  index(`${name}_dead`).on(row.run_at).where(sql`state = 2`),
  index(`${name}_held`).on(row.owner, row.id).where(sql`state = 3`),
]

/** Work of every kind that has no table of its own: open work only, a job that is over is deleted. */
export const jobs = table(
  "jobs",
  {
    id: id(),
    name: text().notNull(),
    project_id: ref(),
    payload: json<unknown>().notNull(),
    priority: int().notNull(),
    ...workColumns(),
    last_error: text(),
    created_at: time().notNull(),
  },
  (job) => workIndexes("jobs", job, job.priority),
)
life(jobs, {
  owner: "project",
  ends: "after 30 days",
  sealed: {
    payload: {
      what: "erasures of subscribers that have not ended",
      remedy: "look for what is left of the person with `belfry subscribers`, and remove it",
      drop: "row",
    },
  },
  personal: { searched: ["payload", "last_error"] },
})

/** Life signs of the processes that share a database: what a silent one had claimed is released. */
export const nodes = table("nodes", {
  id: id(),
  /** By the clock of the database. */
  seen_at: time().notNull(),
})
life(nodes, { owner: "instance", ends: "after the end of the process" })

type JobStatus = "queued" | "running" | "completed" | "failed" | "cancelled"

export interface JobError {
  code: string
  message: string
}

/**
 * Long work that a caller started and may watch: a retry of thousands, a backup. The queue does it
 * with rows of its own table (`jobs`); this table holds what is shown.
 */
export const longJobs = table(
  "long_jobs",
  {
    id: id(),
    project_id: ref().notNull(),
    /** `noun.verb`, as `webhook.replay`. */
    type: text().notNull(),
    status: text<JobStatus>().notNull(),
    total: int().notNull(),
    done: int().notNull(),
    failed: int().notNull(),
    result: json<unknown>(),
    error: json<JobError | null>(),
    created_at: time().notNull(),
    completed_at: time(),
  },
  (job) => [
    index("long_jobs_by_project").on(job.project_id, job.id),
    index("long_jobs_by_end").on(job.completed_at),
  ],
)
life(longJobs, { owner: "project", ends: "after 30 days", late: true })

/** What an operator stopped: a whole queue (`email`), or what goes to one domain (`email:b.test`). */
export const pausedQueues = table("paused_queues", {
  queue: key(),
  paused_by: text(),
  paused_at: time().notNull(),
})
life(pausedQueues, { owner: "instance", ends: "never" })
