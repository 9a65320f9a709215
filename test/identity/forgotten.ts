import { eq } from "drizzle-orm"
import { passwordForgotten, sendReset } from "../../src/identity/password-recovery"
import { jobs } from "../../src/jobs/tables"
import type { TestService } from "../harness/service"

/** Does what the queue would do with the requests for a new password. */
export async function runForgotten({ store, parts }: TestService): Promise<number> {
  const handler = sendReset(store, parts)
  const mine = eq(jobs.name, passwordForgotten.name)
  const waiting = await store.read.select().from(jobs).where(mine)
  for (const job of waiting) {
    const verdict = await handler.run(job.payload as { email: string }, job)
    await store.tx(async (tx) => {
      if ("done" in verdict) await verdict.done?.(tx)
      await tx.delete(jobs).where(eq(jobs.id, job.id))
    })
  }
  return waiting.length
}
