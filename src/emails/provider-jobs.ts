import { and, eq, inArray } from "drizzle-orm"
import { now } from "../core/time"
import { deliverMessage } from "../messages/pipeline"
import { type Probe, pause, resume } from "../providers/standing"
import { providerConfigs } from "../providers/tables"
import type { Handler } from "../store/job-handler"
import { READY, ringJobs } from "../store/queue"
import type { Store } from "../store/store"
import { jobs } from "../store/tables"
import type { Adapters } from "./providers/adapters"
import { NO_PROVIDER_NOW } from "./providers/choose"
import { ProviderTrouble } from "./providers/provider"

const AT_ONCE = 500

/** Asks a paused provider; if it takes the credentials again, what waits for it goes on. */
export const probeProvider = (store: Store, adapters: Adapters): Handler<Probe> => ({
  run: async ({ config_id, project_id, due, tried }) => {
    const ours = and(eq(providerConfigs.id, config_id), eq(providerConfigs.project_id, project_id))
    const [row] = await store.read.select().from(providerConfigs).where(ours)
    if (row?.paused_until !== due) return {} // changed, or gone
    const trouble = await found(adapters, row)
    return {
      done: (tx) => (trouble ? pause(tx, row, trouble, tried) : resume(tx, row)),
    }
  },
})

async function found(adapters: Adapters, row: typeof providerConfigs.$inferSelect) {
  try {
    const lease = adapters.lease(row)
    try {
      await lease.provider.check?.()
      return undefined
    } finally {
      lease.release()
    }
  } catch (error) {
    if (error instanceof ProviderTrouble) return error.message
    throw error
  }
}

/** Looks for what waits for a provider of the project, some at a time, and makes it due. */
export const wakeWaiting = (store: Store): Handler<{ project_id: string }> => ({
  run: async ({ project_id }) => {
    const waiting = and(
      eq(jobs.project_id, project_id),
      eq(jobs.name, deliverMessage.name),
      eq(jobs.state, READY),
      eq(jobs.last_error, NO_PROVIDER_NOW),
    )
    for (;;) {
      const some = await store.read.select({ id: jobs.id }).from(jobs).where(waiting).limit(AT_ONCE)
      if (some.length === 0) return {}
      const ids = some.map(({ id }) => id)
      await store.tx(async (tx) => {
        const change = { run_at: now(), last_error: null }
        await tx
          .update(jobs)
          .set(change)
          .where(and(inArray(jobs.id, ids), waiting))
        tx.afterCommit(ringJobs)
      })
    }
  },
})
