import { and, eq } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { now, secondsFromNow } from "../core/time"
import { enqueue, type JobKind } from "../jobs/jobs"
import { PRIORITIES } from "../jobs/work"
import { short } from "../lib/text"
import { held } from "../store/locks"
import type { Tx } from "../store/store"
import { type ConfigRow, tell } from "./config-record"
import { providerConfigs } from "./tables"
import { tellBegin, tellEnd, tellStill } from "./trouble-log"

export interface Refused {
  config_id: string
  project_id: string
  account_id: string
  reason: string
}

/** Tells the admins of the project that a provider does not take its credentials any more. */
export const providerRefused: JobKind<Refused> = {
  name: "provider.refused",
  schedule: (attempt, age) => (age > 86_400 ? undefined : Math.min(60 * attempt, 3600)),
}

export interface Probe {
  /** INSTANCE for the instance's own provider. */
  config_id: string
  project_id: string | null
  /** The `paused_until` it was made for: when the row has another one, it is not wanted. */
  due: string
}

/** Asks a provider that refused our login whether it takes it again. One job for all nodes. */
export const providerProbe: JobKind<Probe> = {
  name: "provider.probe",
  schedule: (attempt) => Math.min(60 * attempt, 3600),
}

/** Wakes what waited for a provider: of a project, or (null) of the instance. */
export const providersResumed: JobKind<{ project_id: string | null }> = {
  name: "provider.resumed",
  schedule: (attempt) => Math.min(10 * attempt, 600),
}

export const enqueueResumed = (tx: Tx, project_id: string | null) =>
  enqueue(tx, providersResumed, { payload: { project_id }, project_id })

export const PROBE_SECONDS = 60

/** Asked again in a minute, whatever becomes of the process that asked last. Returns when. */
export async function planProbe(tx: Tx, asked: Omit<Probe, "due">): Promise<string> {
  const due = secondsFromNow(PROBE_SECONDS)
  const { project_id } = asked
  const when = { run_at: due, priority: PRIORITIES.urgent }
  await enqueue(tx, providerProbe, { payload: { ...asked, due }, project_id, ...when })
  return due
}

/** What was tried: a refusal of credentials that were replaced meanwhile says nothing. */
export interface Tried {
  id: string
  project_id: string
  credentials: string | null
}

/** What asked again, and what it heard. */
export interface Asked {
  /** The message that asks; null where none waits, so that only a login is tried. */
  message_id: string | null
  /** The provider's words, where it has just refused again. */
  reason?: string
}

/**
 * Hands nothing more to a provider that refused our credentials but one message a minute, until it
 * takes one, or they are changed. The admins hear of it once; so does the log, since their mail may
 * not be able to leave. Returns whether it was not paused before.
 */
export async function pause(tx: Tx, tried: Tried, why: string): Promise<boolean> {
  const row = await current(tx, tried)
  if (!row || row.paused_until !== null) return false
  const reason = short(why)
  const { id: config_id, project_id, account_id } = row
  const paused_until = await planProbe(tx, { config_id, project_id })
  const trouble = { status: "error" as const, last_error: reason, trouble_since: now() }
  const change = { ...trouble, paused_until, probe_message_id: null }
  await tx.update(providerConfigs).set(change).where(eq(providerConfigs.id, row.id))
  tx.afterCommit(() => tellBegin("refuses_login", named(row), reason))
  await tell(tx, audit.SYSTEM, "provider.paused", { before: row, after: { ...row, ...change } })
  const payload = { config_id, project_id, account_id, reason }
  await enqueue(tx, providerRefused, { payload, project_id })
  return true
}

/** Whether the probe planned for that time is still wanted. Holds the row, so that only one asks. */
export const isDue = async (tx: Tx, tried: Tried, due: string): Promise<boolean> =>
  (await current(tx, tried))?.paused_until === due

/** Plans the next probe of a paused provider, and says which message is the one now. */
export async function probeAgain(tx: Tx, tried: Tried, { message_id, reason }: Asked) {
  const row = await current(tx, tried)
  if (!row || row.paused_until === null) return
  const { id: config_id, project_id } = row
  const paused_until = await planProbe(tx, { config_id, project_id })
  const last_error = short(reason ?? row.last_error)
  const change = { paused_until, probe_message_id: message_id, last_error }
  await tx.update(providerConfigs).set(change).where(eq(providerConfigs.id, row.id))
  if (reason !== undefined) tx.afterCommit(() => tellAgain(row, reason))
}

/** A probe of a paused provider was refused: its words may have changed. */
export async function refusedAgain(tx: Tx, tried: Tried, reason: string) {
  const row = await current(tx, tried)
  if (!row || row.paused_until === null) return
  const last_error = short(reason)
  if (last_error !== row.last_error) {
    await tx.update(providerConfigs).set({ last_error }).where(eq(providerConfigs.id, row.id))
  }
  tx.afterCommit(() => tellAgain(row, reason))
}

/** It works: what waited for it goes on. */
export async function resume(tx: Tx, tried: Tried): Promise<void> {
  const row = await current(tx, tried)
  if (!row || row.status === "active") return
  await tx.update(providerConfigs).set(WORKS).where(eq(providerConfigs.id, row.id))
  if (row.paused_until === null) return
  const since = row.trouble_since ?? now()
  tx.afterCommit(() => tellEnd("refuses_login", named(row), since))
  await tell(tx, audit.SYSTEM, "provider.resumed", { before: row, after: { ...row, ...WORKS } })
  await enqueueResumed(tx, row.project_id)
}

/** Shows that a provider cannot be used, which pauses nothing: each message still asks it. */
export async function showTrouble(tx: Tx, tried: Tried, why: string): Promise<void> {
  const row = await current(tx, tried)
  if (!row || row.paused_until !== null) return
  const change = { status: "error" as const, last_error: short(why) }
  const trouble_since = row.trouble_since ?? now()
  await tx
    .update(providerConfigs)
    .set({ ...change, trouble_since })
    .where(eq(providerConfigs.id, row.id))
}

/** A configuration without trouble. */
export const WORKS = {
  status: "active" as const,
  last_error: null,
  trouble_since: null,
  paused_until: null,
  probe_message_id: null,
}

const named = ({ provider, id: config_id, project_id }: ConfigRow) => ({
  provider,
  config_id,
  project_id,
})

const tellAgain = (row: ConfigRow, reason: string) =>
  tellStill("refuses_login", named(row), { reason, since: row.trouble_since ?? now() })

async function current(tx: Tx, { id, project_id, credentials }: Tried) {
  const ours = and(eq(providerConfigs.id, id), eq(providerConfigs.project_id, project_id))
  const [row] = await held(tx.select().from(providerConfigs).where(ours))
  return row?.credentials === credentials ? row : undefined
}
