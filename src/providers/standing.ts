import { and, eq } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { log } from "../core/log"
import { secondsFromNow } from "../core/time"
import { short } from "../lib/short"
import { held } from "../store/locks"
import { enqueue, type Job, PRIORITIES } from "../store/queue"
import type { Tx } from "../store/store"
import { tell } from "./config-record"
import { providerConfigs } from "./tables"

interface Named {
  config_id: string
  project_id: string
}

export interface Refused extends Named {
  account_id: string
  reason: string
}

/** Tells the admins of the project that a provider does not take its credentials any more. */
export const providerRefused: Job<Refused> = {
  name: "provider.refused",
  schedule: (attempt, age) => (age > 86_400 ? undefined : Math.min(60 * attempt, 3600)),
}

export interface Probe extends Named {
  /** The `paused_until` it was made for: when the row has another one, it is not wanted. */
  due: string
  /** How many probes there were. */
  tried: number
}

/** Asks a paused provider whether it takes the credentials again. */
export const providerProbe: Job<Probe> = {
  name: "provider.probe",
  schedule: (attempt) => Math.min(60 * attempt, 3600),
}

/** Wakes what waited for a provider of the project. */
export const providersResumed: Job<{ project_id: string }> = {
  name: "provider.resumed",
  schedule: (attempt) => Math.min(10 * attempt, 600),
}

export const enqueueResumed = (tx: Tx, project_id: string) =>
  enqueue(tx, providersResumed, { payload: { project_id }, project_id })

const FIRST_PROBE_SECONDS = 60
const LAST_PROBE_SECONDS = 3600

/** 1, 2, 4 … minutes, at most an hour: enough to notice, too little to be locked out for it. */
export const probeSeconds = (tried: number): number =>
  Math.min(FIRST_PROBE_SECONDS * 2 ** tried, LAST_PROBE_SECONDS)

/** What was tried: a refusal of credentials that were replaced meanwhile says nothing. */
export interface Tried {
  id: string
  project_id: string
  credentials: string | null
}

/**
 * Hands nothing more to a provider that refused our credentials, until they are changed or a probe
 * succeeds. The admins hear of it once; so does the log, since their mail may not be able to leave.
 */
export async function pause(tx: Tx, tried: Tried, why: string, probes = 0): Promise<void> {
  const row = await current(tx, tried)
  if (!row || (row.paused_until !== null && probes === 0)) return
  const reason = short(why)
  const due = secondsFromNow(probeSeconds(probes))
  const change = { status: "error" as const, last_error: reason, paused_until: due }
  await tx.update(providerConfigs).set(change).where(eq(providerConfigs.id, row.id))
  const { id: config_id, project_id, account_id, provider } = row
  const payload = { config_id, project_id, due, tried: probes + 1 }
  await enqueue(tx, providerProbe, { payload, project_id, run_at: due, priority: PRIORITIES.bulk })
  if (row.status === "error") return
  const told = { config_id, project_id, provider, reason }
  tx.afterCommit(() => log.warn("a provider refuses its credentials, and is paused", told))
  await tell(tx, audit.SYSTEM, "provider.paused", { before: row, after: { ...row, ...change } })
  await enqueue(tx, providerRefused, {
    payload: { config_id, project_id, account_id, reason },
    project_id,
  })
}

/** It works: what waited for it goes on. */
export async function resume(tx: Tx, tried: Tried): Promise<void> {
  const row = await current(tx, tried)
  if (!row || row.status === "active") return
  const change = { status: "active" as const, last_error: null, paused_until: null }
  await tx.update(providerConfigs).set(change).where(eq(providerConfigs.id, row.id))
  await tell(tx, audit.SYSTEM, "provider.resumed", { before: row, after: { ...row, ...change } })
  await enqueueResumed(tx, row.project_id)
}

async function current(tx: Tx, { id, project_id, credentials }: Tried) {
  const ours = and(eq(providerConfigs.id, id), eq(providerConfigs.project_id, project_id))
  const [row] = await held(tx.select().from(providerConfigs).where(ours))
  return row?.credentials === credentials ? row : undefined
}
