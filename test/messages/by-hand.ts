import { Claims } from "../../src/jobs/job-claims"
import { attempt, finish, type JobHandlers } from "../../src/jobs/job-handler"
import type { ClaimedJob } from "../../src/jobs/queue"
import type { Store } from "../../src/store/store"

/** What a job loop does, step by step. */
export function byHand(store: Store, handlers: JobHandlers, owner = "me") {
  const claims = new Claims(store, handlers, { owner, lease_ms: 30_000 })
  const tried = (job: ClaimedJob) => attempt(handlers[job.name]?.handler, job, claims.known(job))
  return {
    claims,
    /** Runs the job, and writes nothing of what came of it. */
    tried,
    /** Runs the job to its end. */
    async work(job: ClaimedJob) {
      const verdict = await tried(job)
      await store.tx((tx) => finish(tx, handlers[job.name], job, verdict))
      verdict.settled?.()
      return verdict
    },
    async claimOne(): Promise<ClaimedJob> {
      const [job, ...more] = await claims.claim(1)
      if (!job || more.length > 0) throw new Error("exactly one job was expected")
      return job
    },
  }
}
