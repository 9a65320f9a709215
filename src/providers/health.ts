import { and, eq } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { millis, millisFrom, now, secondsFromNow } from "../core/time"
import { enqueue, type JobKind } from "../jobs/jobs"
import { noticeSchedule, PRIORITIES } from "../jobs/work-item"
import { forUpdate, short } from "../store/columns"
import type { Store, Tx } from "../store/store"
import { callbackHash, callbackPath, callbackToken, shownId } from "./callbacks"
import {
  type OwnProvider,
  PROVIDER_KINDS,
  type ProviderDescriptor,
  type ProviderKind,
  type ReturnPathAnswer,
} from "./provider"
import { type ConfigRow, INSTANCE, providerConfigs } from "./tables"

/*
 * The health of a provider, in its row, for all nodes. A provider that refuses our login is paused: one
 * probe a minute asks it again, and its messages wait until it takes the login. Other trouble is shown and
 * pauses nothing.
 */

export interface ProviderRefused {
  config_id: string
  project_id: string
  account_id: string
  reason: string
}

/** Tells the admins of the project that a provider does not take its credentials any more. */
export const providerRefused: JobKind<ProviderRefused> = {
  name: "provider.refused",
  schedule: noticeSchedule,
}

export interface Probe {
  config_id: string
  project_id: string
  /** The `paused_until` it was made for: when the row has another one, it is not wanted. */
  due: string
}

/** Asks a provider that refused our login whether it takes it again. One job for all nodes. */
export const providerProbe: JobKind<Probe> = {
  name: "provider.probe",
  schedule: (attempt) => Math.min(60 * attempt, 3600),
}

/** Wakes what waited for a provider of this project; `INSTANCE` for the instance's own. */
export const providersResumed: JobKind<{ project_id: string }> = {
  name: "provider.resumed",
  schedule: (attempt) => Math.min(10 * attempt, 600),
}

export const enqueueResumed = (tx: Tx, project_id: string) =>
  enqueue(tx, providersResumed, { payload: { project_id }, project_id: jobProject(project_id) })

const jobProject = (project_id: string) => (project_id === INSTANCE ? null : project_id)

const PROBE_SECONDS = 60

/**
 * Plans a probe in a minute, as a job, so that it outlives this process. Returns the time of the
 * probe.
 */
async function planProbe(
  tx: Tx,
  { id, project_id }: ConfigId,
  due = secondsFromNow(PROBE_SECONDS),
) {
  await enqueue(tx, providerProbe, {
    payload: { config_id: id, project_id, due },
    project_id: jobProject(project_id),
    run_at: due,
    priority: PRIORITIES.urgent,
  })
  return due
}

type ConfigId = Pick<ConfigRow, "id" | "project_id">

/** What was tried: a refusal of credentials that were replaced meanwhile says nothing. */
type TriedConfig = ConfigId & Pick<ConfigRow, "credentials">

export const HEALTHY = {
  status: "active" as const,
  last_error: null,
  trouble_since: null,
  paused_until: null,
  probe_message_id: null,
}

/**
 * Hands nothing more to a provider that refused our credentials but one message a minute, until it
 * takes one, or they are changed. The admins hear of it once; so does the log, since their mail may
 * not be able to leave. Returns whether it was not paused before.
 */
export async function pause(tx: Tx, tried: TriedConfig, why: string): Promise<boolean> {
  const row = await current(tx, tried)
  if (!row || row.paused_until !== null) {
    tx.noteChange("provider_configs") // another node was quicker, and our memory does not know
    return false
  }
  const reason = short(why)
  const { id: config_id, project_id, account_id } = row
  const paused_until = await planProbe(tx, row)
  const trouble = { status: "error" as const, last_error: reason, trouble_since: now() }
  const change = { ...trouble, paused_until, probe_message_id: null }
  await write(tx, row, change)
  tx.afterCommit(() => logTrouble("refuses_login", named(row), reason))
  if (project_id === INSTANCE) return true
  await recordChange(tx, audit.SYSTEM, "provider.paused", {
    before: row,
    after: { ...row, ...change },
  })
  const payload = { config_id, project_id, account_id, reason }
  await enqueue(tx, providerRefused, { payload, project_id })
  return true
}

/** Whether the probe planned for that time is still wanted. Holds the row, so that only one asks. */
export const isDue = async (tx: Tx, tried: TriedConfig, due: string): Promise<boolean> =>
  (await current(tx, tried))?.paused_until === due

/**
 * Plans the next probe of a paused provider by this message, or by whichever comes next (its own id); null where none
 * waits, so that only a login is tried. `reason`: the provider's words, where it has just refused again.
 */
export async function probeAgain(
  tx: Tx,
  tried: TriedConfig,
  { message_id, reason }: { message_id: string | null; reason?: string },
) {
  const row = await paused(tx, tried)
  if (!row) return
  const paused_until = await planProbe(tx, row)
  const last_error = short(reason ?? row.last_error)
  await write(tx, row, { paused_until, probe_message_id: message_id, last_error })
  if (reason !== undefined) tx.afterCommit(() => logRefusedAgain(row, reason))
}

/** A probe of a paused provider was refused: its words may have changed. */
export async function refusedAgain(tx: Tx, tried: TriedConfig, reason: string) {
  const row = await paused(tx, tried)
  if (!row) return
  const last_error = short(reason)
  const is_asked_by_any = row.probe_message_id === row.id
  if (is_asked_by_any || last_error !== row.last_error) {
    await write(tx, row, { last_error, ...(is_asked_by_any && { probe_message_id: null }) })
  }
  tx.afterCommit(() => logRefusedAgain(row, reason))
}

/** It works: what waited for it goes on. */
export async function resume(tx: Tx, tried: TriedConfig): Promise<void> {
  const row = await current(tx, tried)
  if (!row || row.status === "active") return
  await write(tx, row, HEALTHY)
  if (row.paused_until === null) return
  const since = row.trouble_since ?? now()
  tx.afterCommit(() => logEnd("refuses_login", named(row), since))
  await enqueueResumed(tx, row.project_id)
  if (row.project_id === INSTANCE) return
  await recordChange(tx, audit.SYSTEM, "provider.resumed", {
    before: row,
    after: { ...row, ...HEALTHY },
  })
}

/** Shows that a provider cannot be used, which pauses nothing: each message still asks it. */
export async function showTrouble(tx: Tx, tried: TriedConfig, why: string): Promise<void> {
  const row = await current(tx, tried)
  if (!row || row.paused_until !== null) return
  const trouble_since = row.trouble_since ?? now()
  await write(tx, row, { status: "error", last_error: short(why), trouble_since })
}

/** Neither credentials nor what finds a callback; only that they were changed. */
const withoutSecrets = ({ credentials: _, callback_token_hash: __, ...row }: ConfigRow) => row

/** Writes a change into the audit log, in the transaction that makes it. */
export async function recordChange(
  tx: Tx,
  by: audit.By,
  action: string,
  { before, after }: { before?: ConfigRow; after?: ConfigRow },
  credentials_changed = false,
) {
  const { account_id, project_id, id: config_id } = (after ?? before) as ConfigRow
  await audit.record(tx, by, {
    account_id,
    project_id,
    action,
    target: { type: "provider_config", id: config_id },
    ...(before && { before: withoutSecrets(before) }),
    ...(after && {
      after: { ...withoutSecrets(after), ...(credentials_changed && { credentials_changed }) },
    }),
  })
}

/**
 * Writes the row of the instance's own provider, at the start of a process. The settings may be others,
 * so one that refused our login before is asked at once, and other trouble is forgotten.
 */
export async function openInstance(
  store: Store,
  secrets: Secrets,
  kind: ProviderKind,
  { descriptor, credentials }: OwnProvider,
): Promise<void> {
  const { name: provider, callbacks } = descriptor
  const id = instanceId(kind)
  const token = instanceToken(secrets, kind)
  const callback_token_hash = callbacks ? callbackHash(token) : null
  const version = secrets.mac("provider credentials", JSON.stringify(credentials)).toString("hex")
  const moment = now()
  const plain = { provider, name: provider, credentials: version, callback_token_hash }
  const fresh: ConfigRow = {
    id,
    account_id: INSTANCE,
    project_id: INSTANCE,
    kind,
    ...plain,
    priority: 0,
    enabled: true,
    ...HEALTHY,
    settings: {},
    created_at: moment,
    updated_at: moment,
  }
  await store.tx(async (tx) => {
    await tx.insert(providerConfigs).values(fresh).onConflictDoNothing()
    const [row] = await forUpdate(
      tx.select().from(providerConfigs).where(eq(providerConfigs.id, id)),
    )
    if (!row) return
    const settings = row.credentials === version ? row.settings : {}
    const health =
      row.paused_until === null ? HEALTHY : { paused_until: await planProbe(tx, row, moment) }
    await write(tx, row, { ...plain, settings, ...health })
  })
}

/** Forgets the row of the instance's own provider, where the settings name none of this kind any more. */
export async function closeInstance(store: Store, kind: ProviderKind): Promise<void> {
  await store.tx((tx) => tx.delete(providerConfigs).where(eq(providerConfigs.id, instanceId(kind))))
}

const instanceToken = (secrets: Secrets, kind: ProviderKind) =>
  callbackToken(secrets, { id: instanceId(kind), project_id: INSTANCE })

/** The path that the instance's own provider calls back. */
export function instanceCallback(secrets: Secrets, { channel, name }: ProviderDescriptor): string {
  const kind = `${channel}_provider` as const
  return `${callbackPath({ kind, provider: name })}/${instanceToken(secrets, kind)}`
}

/** Of the row of the instance's own provider: one for each kind. */
export const instanceId = (kind: ProviderKind): string =>
  INSTANCE.replace(/.$/, (15 - PROVIDER_KINDS.indexOf(kind)).toString(16))

/** In the row of a provider alone. */
async function write(tx: Tx, { id }: ConfigId, change: Partial<ConfigRow>): Promise<void> {
  await tx.update(providerConfigs).set(change).where(eq(providerConfigs.id, id))
}

/** The row as it is now, held; undefined where it has other credentials by now. */
async function current(tx: Tx, { id, project_id, credentials }: TriedConfig) {
  const ours = and(eq(providerConfigs.id, id), eq(providerConfigs.project_id, project_id))
  const [row] = await forUpdate(tx.select().from(providerConfigs).where(ours))
  return row?.credentials === credentials ? row : undefined
}

async function paused(tx: Tx, tried: TriedConfig) {
  const row = await current(tx, tried)
  return row?.paused_until === null ? undefined : row
}

export interface LoggedProvider {
  provider: string
  /** Of its configuration, or `instance` for the instance's own provider. */
  config_id: string
  project_id?: string
}

export const named = (row: ConfigRow): LoggedProvider => ({
  provider: row.provider,
  config_id: shownId(row),
  ...(row.project_id !== INSTANCE && { project_id: row.project_id }),
})

export type TroubleKind = "refuses_login" | "refuses_us" | "unreachable"

/** As it is printed behind the provider's name: that it has this trouble, and that the trouble is over. */
export const TROUBLES: Record<TroubleKind, [is: string, ended: string]> = {
  refuses_login: ["refuses our login", "accepts our login again"],
  refuses_us: ["refuses to deliver for us", "delivers for us again"],
  unreachable: ["cannot be reached", "can be reached again"],
}

const MESSAGES_WAIT = " Its messages wait; one a minute tries the login again."

export function logTrouble(kind: TroubleKind, provider: LoggedProvider, reason: string) {
  const follows = kind === "refuses_login" ? MESSAGES_WAIT : ""
  log.warn(`A provider ${TROUBLES[kind][0]}.${follows}`, { ...provider, reason })
}

/** Once a minute while it lasts. */
export const logLasting = (
  kind: TroubleKind,
  provider: LoggedProvider,
  why: { reason: string; since: string },
) => log.warn(`A provider still ${TROUBLES[kind][0]}.`, { ...provider, ...why })

export const logEnd = (kind: TroubleKind, provider: LoggedProvider, since: string) =>
  log.info(`A provider ${TROUBLES[kind][1]}.`, {
    ...provider,
    since,
    seconds: Math.round((millis() - millisFrom(since)) / 1000),
  })

const logRefusedAgain = (row: ConfigRow, reason: string) =>
  logLasting("refuses_login", named(row), { reason, since: row.trouble_since ?? now() })

/** Of one relay. Further hosts are asked at each mail, and not told. */
const MOST_HOSTS = 50

/** The hosts of our return path that a relay refuses, each with its words. */
export const refusedReturnPaths = ({ settings }: Pick<ConfigRow, "settings">) =>
  (settings.refused_return_paths ?? {}) as Record<string, string>

/** Whether a relay says something else than before. */
export const isNews = (config: ConfigRow, { host, refusal }: ReturnPathAnswer): boolean =>
  Object.hasOwn(refusedReturnPaths(config), host) === (refusal === null)

/** Keeps what a relay made of our return path, and tells the log when that changes. Settings that change forget it. */
export async function keepReturnPath(
  tx: Tx,
  tried: TriedConfig,
  answer: ReturnPathAnswer,
): Promise<void> {
  const row = await current(tx, tried)
  if (!row || !isNews(row, answer)) return
  const { host, refusal } = answer
  const { [host]: _, ...others } = refusedReturnPaths(row)
  if (refusal !== null && Object.keys(others).length >= MOST_HOSTS) return
  const refused_return_paths = refusal === null ? others : { ...others, [host]: short(refusal) }
  await write(tx, row, { settings: { ...row.settings, refused_return_paths } })
  tx.afterCommit(() =>
    refusal === null
      ? log.info(PATH_TAKEN, { ...named(row), host })
      : log.warn(PATH_REFUSED, { ...named(row), host, reason: refusal }),
  )
}

/** For people: what follows from a refusal, and what to do. */
export const refusalText = (host: string, words: string): string =>
  `The relay refuses ${host} as envelope sender: "${words}" ${CONSEQUENCE}`

const CONSEQUENCE =
  "Belfry sends mail with the author's address, so it gets no bounces. Allow the host as a sender at the relay, then run `belfry providers test`."

const PATH_REFUSED = `A relay refuses our return path. ${CONSEQUENCE}`
const PATH_TAKEN = "A relay takes our return path again."
