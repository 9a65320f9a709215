import { sql } from "drizzle-orm"
import { id, index, int, json, key, ref, table, text, time } from "../store/columns"

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

export type JobStatus = "queued" | "running" | "completed" | "failed" | "cancelled"

/** Why a job failed, in the words of an error of the API. */
export interface JobError {
  code: string
  message: string
}

/**
 * What somebody asked for and may watch: a retry of thousands, a backup. The queue's own table
 * (`jobs`) is how it gets done; this is what is told of it.
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

/** What an operator stopped: a whole queue (`email`), or what goes to one domain (`email:b.test`). */
export const pausedQueues = table("paused_queues", {
  queue: key(),
  paused_by: text(),
  paused_at: time().notNull(),
})
