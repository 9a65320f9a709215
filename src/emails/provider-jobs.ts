import { and, asc, eq } from "drizzle-orm"
import { heldProject, holders, providerHold, unhold, unholdOne } from "../jobs/holds"
import type { JobHandler } from "../jobs/jobs"
import { isHeld } from "../jobs/work-rows"
import { messageRows } from "../messages/pipeline"
import { isClaimed } from "../messages/standing"
import { messages } from "../messages/tables"
import { INSTANCE } from "../providers/callback-token"
import { isInstanceDue, probeInstanceAgain, resumeInstance } from "../providers/instance-standing"
import { instanceRefusal, refusalFor } from "../providers/refusals"
import { emailRouting, isUsable } from "../providers/routing"
import { type Asked, isDue, type Probe, probeAgain, resume } from "../providers/standing"
import { providerConfigs } from "../providers/tables"
import type { Reader, Store, Tx } from "../store/store"
import type { Adapters } from "./providers/adapters"
import { ProviderError } from "./providers/provider"

/** A provider that refused our login, and how it is asked again. */
interface Paused {
  paused_until: string | null
  probe_message_id: string | null
  /** The messages that wait for it alone, oldest first. */
  firstWaiting(): Promise<Waiting | undefined>
  /** Whether nobody else has asked it meanwhile. Holds its row. */
  isDue(tx: Tx): Promise<boolean>
  /** Logs in without a message. Rejects with ProviderError. */
  check(): Promise<unknown>
  again(tx: Tx, asked: Asked): Promise<void>
  resume(tx: Tx): Promise<void>
}

interface Waiting {
  id: string
  /** The hold that it is under. */
  by: string
}

/**
 * Asks a paused provider, once a minute for all nodes: by one message of those that wait, or by a login
 * alone where none does. If it takes the login, what waits for it goes on.
 */
export const probeProvider = (store: Store, adapters: Adapters): JobHandler<Probe> => ({
  run: async (probe) => {
    const paused = await find(store, adapters, probe)
    if (paused?.paused_until !== probe.due) return {} // changed, or gone
    const { probe_message_id: asking } = paused
    if (asking !== null && (await isInFlight(store.read, asking))) {
      return once(paused, (tx) => paused.again(tx, { message_id: asking }))
    }
    const first = await paused.firstWaiting()
    if (first) return once(paused, (tx) => askBy(tx, paused, first))
    const trouble = await found(() => paused.check())
    if (trouble === undefined) return once(paused, (tx) => paused.resume(tx))
    return once(paused, (tx) => paused.again(tx, { message_id: null, reason: trouble }))
  },
})

/** A job may run twice: the second run must not take the message of the first one back. */
const once = (paused: Paused, change: (tx: Tx) => Promise<void>) => ({
  done: async (tx: Tx) => {
    if (await paused.isDue(tx)) await change(tx)
  },
})

/** The message goes back to the queue, where it alone is let through. */
async function askBy(tx: Tx, paused: Paused, { id, by }: Waiting) {
  const is_let_go = await unholdOne(tx, messageRows, by, id)
  await paused.again(tx, { message_id: is_let_go ? id : null })
}

const find = (store: Store, adapters: Adapters, probe: Probe): Promise<Paused | undefined> =>
  probe.project_id === null || probe.config_id === INSTANCE
    ? findInstance(store, adapters, probe)
    : findConfig(store, adapters, { ...probe, id: probe.config_id, project_id: probe.project_id })

async function findConfig(
  { read }: Store,
  adapters: Adapters,
  { id, project_id, due }: { id: string; project_id: string; due: string },
): Promise<Paused | undefined> {
  const ours = and(eq(providerConfigs.id, id), eq(providerConfigs.project_id, project_id))
  const [row] = await read.select().from(providerConfigs).where(ours)
  if (!row) return undefined
  return {
    ...row,
    firstWaiting: async () =>
      isUsable(await emailRouting(read, project_id)) ? undefined : firstHeld(read, project_id),
    isDue: (tx) => isDue(tx, row, due),
    check: async () => {
      const lease = adapters.lease(row)
      await lease.provider.check?.().finally(() => lease.release())
    },
    again: (tx, asked) => probeAgain(tx, row, asked),
    resume: (tx) => resume(tx, row),
  }
}

async function findInstance(
  { read }: Store,
  { own }: Adapters,
  { due }: Probe,
): Promise<Paused | undefined> {
  const refusal = await instanceRefusal(read)
  if (!refusal) return undefined
  return {
    paused_until: refusal.next_probe_at,
    probe_message_id: refusal.probe_message_id,
    firstWaiting: () => firstOfInstance(read),
    isDue: (tx) => isInstanceDue(tx, due),
    check: async () => own?.check?.(),
    again: probeInstanceAgain,
    resume: resumeInstance,
  }
}

async function firstOfInstance(db: Reader): Promise<Waiting | undefined> {
  for (const by of await holders(db, messageRows)) {
    const project_id = heldProject(by)
    if (project_id === undefined || (await emailRouting(db, project_id)).length > 0) continue
    const first = await firstHeld(db, project_id)
    if (first) return first
  }
  return undefined
}

/** The oldest message under a project's hold. */
async function firstHeld(db: Reader, project_id: string): Promise<Waiting | undefined> {
  const by = providerHold(project_id)
  const rows = db.select({ id: messages.id }).from(messages)
  const waiting = and(isHeld, eq(messages.owner, by), eq(messages.status, "queued"))
  const [first] = await rows.where(waiting).orderBy(asc(messages.id)).limit(1)
  return first && { id: first.id, by }
}

async function isInFlight(db: Reader, id: string): Promise<boolean> {
  const one = and(eq(messages.id, id), isClaimed(db))
  return (await db.select({ id: messages.id }).from(messages).where(one)).length > 0
}

async function found(check: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await check()
    return undefined
  } catch (error) {
    if (error instanceof ProviderError) return error.message
    throw error
  }
}

/** Gives back what waits for a provider, as long as there is one that can be asked. */
export const wakeWaiting = (store: Store): JobHandler<{ project_id: string | null }> => ({
  run: async ({ project_id }) => {
    if (project_id === null) await wakeStranded(store)
    else await goOn(store, project_id)
    return {}
  },
})

async function goOn(store: Store, project_id: string) {
  const isRefused = async () => (await refusalFor(store.read, project_id)) !== undefined
  while (!(await isRefused()) && (await unhold(store, messageRows, providerHold(project_id))) > 0);
}

/** The same for every project: a message may have been held just when its provider came back. */
export async function wakeStranded(store: Store): Promise<void> {
  for (const by of await holders(store.read, messageRows)) {
    const project_id = heldProject(by)
    if (project_id !== undefined) await goOn(store, project_id)
  }
}
