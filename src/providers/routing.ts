import { and, asc, eq } from "drizzle-orm"
import { providerHold } from "../jobs/holds"
import { DeferredError } from "../jobs/work-item"
import { cached } from "../store/cached"
import type { Reader } from "../store/store"
import { channelOf, type OutgoingMessage, type ProviderKind } from "./provider"
import { type ConfigRow, INSTANCE, providerConfigs } from "./tables"

/** How long another node's accepts may go on believing what this one knows to have changed. */
const TRUSTED_MS = 1000

const routings = cached<ConfigRow[]>({ tables: ["provider_configs"] })

/**
 * The providers of a project, in the order of asking: what is enabled, paused or not; where it has
 * configured none, the instance's own. `recent`: on Postgres the answer may be a second old, but what
 * it calls paused is read again. `recent_own`: the same of the instance's own alone. `service`: those of this
 * name alone.
 */
export async function routing(
  db: Reader,
  kind: ProviderKind,
  project_id: string,
  { recent = false, recent_own = recent, service }: RoutingOptions = {},
): Promise<ConfigRow[]> {
  const of = (rows: ConfigRow[]) =>
    service === undefined ? rows : rows.filter(({ provider }) => provider === service)
  async function usableNow(owner: string, is_recent: boolean) {
    const rows = of(await configured(db, kind, owner, is_recent))
    return isUsable(rows) ? rows : of(await configured(db, kind, owner, false))
  }
  const rows = await usableNow(project_id, recent)
  return rows.length > 0 ? rows : usableNow(INSTANCE, recent_own)
}

interface RoutingOptions {
  recent?: boolean
  recent_own?: boolean
  service?: string | undefined
}

const configured = (db: Reader, kind: ProviderKind, project_id: string, recent: boolean) => {
  const read = () => inOrder(db, kind, project_id)
  return routings(db, `${kind} ${project_id}`, read, recent ? TRUSTED_MS : 0)
}

function inOrder(db: Reader, which: ProviderKind, owner: string): Promise<ConfigRow[]> {
  const { project_id, kind, enabled, priority, id } = providerConfigs
  const ours = and(eq(project_id, owner), eq(kind, which), eq(enabled, true))
  return db.select().from(providerConfigs).where(ours).orderBy(asc(priority), asc(id))
}

/** Whether one of the providers can deliver now. */
export const isUsable = (rows: ConfigRow[]): boolean =>
  rows.length === 0 || rows.some(({ paused_until }) => paused_until === null)

export const isOwn = ([first]: ConfigRow[]): boolean =>
  first === undefined || first.project_id === INSTANCE

/** The provider that a project asks first; null where that is the instance's own. For accepting messages. */
export function firstProvider(
  db: Reader,
  kind: ProviderKind,
  project_id: string,
): string | null | Promise<string | null> {
  const rows = configured(db, kind, project_id, true)
  if (!(rows instanceof Promise) && isUsable(rows)) return rows[0]?.provider ?? null
  return routing(db, kind, project_id, { recent: true }).then((all) =>
    isOwn(all) ? null : (all[0]?.provider ?? null),
  )
}

/** A provider refuses our login, and messages wait for it. */
interface LoginRefusal {
  name: string
  /** Its own words. */
  reason: string
  /** When it is asked again. */
  next_probe_at: string
  /** The one message that may ask it. */
  probe_message_id: string | null
}

/** What a message that waits for it says of itself. */
export const waitingReason = ({ name, reason }: LoginRefusal): string =>
  `${name} refuses our login: ${reason}. Messages wait until it accepts the login.`

/**
 * Why no provider takes the messages of a project now, or why this service does not: of several refusals the one
 * that is probed next.
 */
export async function refusalFor(
  db: Reader,
  kind: ProviderKind,
  project_id: string,
  service?: string,
) {
  const rows = await routing(db, kind, project_id, { service })
  return isUsable(rows) ? undefined : refusalOf(rows)
}

/** Of configurations that are all paused. */
function refusalOf(rows: ConfigRow[]): LoginRefusal | undefined {
  const refusals = rows.flatMap((row): LoginRefusal[] => {
    const { provider, name: own, last_error, paused_until, probe_message_id } = row
    if (paused_until === null) return []
    const name = own === provider ? provider : `${provider} (${own})`
    return [{ name, reason: last_error ?? "", next_probe_at: paused_until, probe_message_id }]
  })
  return refusals.sort((a, b) => (a.next_probe_at < b.next_probe_at ? -1 : 1))[0]
}

/** Whether a paused provider waits to be asked by this message, or by whichever comes next. */
export const isProbe = ({ id, probe_message_id: probe }: ConfigRow, message_id: string): boolean =>
  probe === message_id || probe === id

/**
 * The providers that may be asked for a message: those that are not paused, and one that waits to be
 * asked by this very message or by any. Throws DeferredError where there is none.
 */
export function usable(rows: ConfigRow[], { message_id, ...message }: Omit<OutgoingMessage, "to">) {
  const open = rows.filter((row) => row.paused_until === null || isProbe(row, message_id))
  const [first] = rows
  const refusal = open.length > 0 ? undefined : refusalOf(rows)
  if (first && refusal) throw heldBy(message, first.kind, refusal)
  return open
}

/** It waits until a provider is resumed, because looking again and again would only be in the way. */
export const heldBy = (
  { project_id, service }: Pick<OutgoingMessage, "project_id" | "service">,
  kind: ProviderKind,
  refusal: LoginRefusal,
) =>
  new DeferredError(
    waitingReason(refusal),
    null,
    providerHold(project_id, channelOf(kind), service),
  )
