import { and, eq } from "drizzle-orm"
import { emailRouting, isUsable } from "../providers/routing"
import { type Probe, pause, resume } from "../providers/standing"
import { providerConfigs } from "../providers/tables"
import { heldProject, holders, providerHold, unhold } from "../store/holding"
import type { Handler } from "../store/job-handler"
import type { Store } from "../store/store"
import type { Adapters } from "./providers/adapters"
import { ProviderTrouble } from "./providers/provider"

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

/** Gives back what waits for a provider of the project, as long as there is one that can be asked. */
export const wakeWaiting = (store: Store): Handler<{ project_id: string }> => ({
  run: async ({ project_id }) => {
    await goOn(store, project_id)
    return {}
  },
})

async function goOn(store: Store, project_id: string) {
  const rows = () => emailRouting(store.read, project_id)
  while (isUsable(await rows()) && (await unhold(store, providerHold(project_id))) > 0);
}

/** The same for every project: a message may have been held just when its provider came back. */
export async function wakeStranded(store: Store): Promise<void> {
  for (const by of await holders(store.read)) {
    const project_id = heldProject(by)
    if (project_id !== undefined) await goOn(store, project_id)
  }
}
