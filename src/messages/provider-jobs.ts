import { and, asc, eq } from "drizzle-orm"
import { now } from "../core/time"
import { heldFor, holders, providerHold, unhold, unholdEnded, unholdThese } from "../jobs/holds"
import type { JobHandler } from "../jobs/jobs"
import { isHeld } from "../jobs/work-rows"
import { isDue, type Probe, probeAgain, resume } from "../providers/health"
import type { OpenProviders } from "../providers/open-providers"
import { channelOf, kindOf, ProviderError } from "../providers/provider"
import { isOwn, isUsable, refusalFor, routing } from "../providers/routing"
import { type ConfigRow, INSTANCE, providerConfigs } from "../providers/tables"
import { rowById } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import { isClaimed } from "./message-list"
import { messageRows } from "./pipeline"
import { messages } from "./tables"

interface HeldMessage {
  id: string
  by: string
}

/**
 * Asks a paused provider, once a minute for all nodes: by one message of those that wait, or by a login
 * alone where none does. If it takes the login, what waits for it goes on. Where a login proves nothing, the next message
 * asks it: a pause that ended without a proof would begin again, and each time tell the admins.
 */
export const probeProvider = (store: Store, providers: OpenProviders): JobHandler<Probe> => ({
  run: async (probe) => {
    const of_project = eq(providerConfigs.project_id, probe.project_id)
    const config = await rowById(store.read, providerConfigs, probe.config_id, of_project)
    if (config?.paused_until !== probe.due) return {} // changed, or gone
    const { probe_message_id: asking } = config
    // A job may run twice: the second run must not take the message of the first one back.
    const once = (change: (tx: Tx) => Promise<void>) => ({
      done: async (tx: Tx) => {
        if (await isDue(tx, config, probe.due)) await change(tx)
      },
    })
    if (asking !== null && (await rowById(store.read, messages, asking, isClaimed(store.read)))) {
      return once((tx) => probeAgain(tx, config, { message_id: asking }))
    }
    const first = await firstWaiting(store.read, config)
    if (first) return once((tx) => askBy(tx, config, first))
    const login = await triedLogin(providers, config)
    if (login === "taken") return once((tx) => resume(tx, config))
    return once((tx) => probeAgain(tx, config, login))
  },
})

/** The message goes back to the queue, where it alone is let through. */
async function askBy(tx: Tx, config: ConfigRow, { id, by }: HeldMessage) {
  const let_go = await unholdThese(tx, messageRows, by, [id], { run_at: now() })
  await probeAgain(tx, config, { message_id: let_go > 0 ? id : null })
}

/** The oldest of the messages that wait for this provider alone, whether or not another one could deliver them. */
async function firstWaiting(db: Reader, { kind, project_id, provider }: ConfigRow) {
  if (project_id !== INSTANCE) {
    for (const service of [undefined, provider]) {
      if (isUsable(await routing(db, kind, project_id, { service }))) continue
      const first = await firstHeld(db, providerHold(project_id, channelOf(kind), service))
      if (first) return first
    }
    return undefined
  }
  for (const by of await holders(db, messageRows)) {
    const held = heldFor(by)
    if (!held || kindOf(held.channel) !== kind) continue
    if (!isOwn(await routing(db, kind, held.project_id))) continue
    const first = await firstHeld(db, by)
    if (first) return first
  }
  return undefined
}

async function firstHeld(db: Reader, by: string): Promise<HeldMessage | undefined> {
  const rows = db.select({ id: messages.id }).from(messages)
  const waiting = and(isHeld, eq(messages.owner, by), eq(messages.status, "queued"))
  const [first] = await rows.where(waiting).orderBy(asc(messages.id)).limit(1)
  return first && { id: first.id, by }
}

async function triedLogin(providers: OpenProviders, config: ConfigRow) {
  try {
    return await providers.use(config, async (provider) => {
      await provider.check?.()
      return provider.proves_login === false ? { message_id: config.id } : "taken"
    })
  } catch (error) {
    if (error instanceof ProviderError) return { message_id: null, reason: error.message }
    throw error
  }
}

/** Gives back what waits for a provider of any kind, as long as there is one that can be asked. */
export const wakeWaiting = (store: Store): JobHandler<{ project_id: string }> => ({
  run: async ({ project_id }) => {
    await wakeStranded(store, project_id === INSTANCE ? undefined : project_id)
    return {}
  },
})

/**
 * The same for every project: a message may have been held just when its provider came back, and the time of one may
 * be over meanwhile.
 */
export async function wakeStranded(store: Store, of_project?: string): Promise<void> {
  if (of_project === undefined) while ((await unholdEnded(store, messageRows)) > 0);
  for (const by of await holders(store.read, messageRows)) {
    const held = heldFor(by)
    if (!held || held.project_id !== (of_project ?? held.project_id)) continue
    const { project_id, channel, service } = held
    const refusal = () => refusalFor(store.read, kindOf(channel), project_id, service)
    while (!(await refusal()) && (await unhold(store, messageRows, by)) > 0);
  }
}
