import { id, index, int, json, ref, table, text, time } from "../store/columns"

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
