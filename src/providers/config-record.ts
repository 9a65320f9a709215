import * as audit from "../audit-log/audit-log"
import type { Secrets } from "../core/secrets"
import type { Tx } from "../store/store"
import { callbackToken, INSTANCE_NAME } from "./callbacks"
import { masked, openCredentials } from "./credentials"
import { channelOf, findDescriptor, type ProviderDescriptor } from "./provider"
import { type ConfigRow, INSTANCE } from "./tables"

/** What a project may say of a configuration, besides how to get in. */
export interface ConfigSettings {
  max_per_second?: number
  spf?: string[]
}

/** What is absent stays; null forgets a setting. */
export type SettingsChange = {
  [Name in keyof ConfigSettings]?: Required<ConfigSettings>[Name] | null
}

interface RecordParts {
  secrets: Secrets
  link_base: string
  table: readonly ProviderDescriptor[]
}

/** ProviderConfig of the contract. */
export function record(row: ConfigRow, { secrets, link_base, table }: RecordParts) {
  const token = row.callback_token_hash === null ? null : callbackToken(secrets, row)
  const descriptor = findDescriptor(table, row.kind, row.provider)
  return {
    id: row.id,
    kind: row.kind,
    provider: row.provider,
    name: row.name,
    priority: row.priority,
    enabled: row.enabled,
    status: row.status,
    last_error: row.last_error,
    next_probe_at: row.paused_until,
    credentials: masked(descriptor, openCredentials(secrets, row)),
    settings: shownSettings(row),
    callback_url: token && `${link_base}${callbackPath(row)}/${token}`,
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

export const callbackPath = ({ kind, provider }: Pick<ConfigRow, "kind" | "provider">): string =>
  `/v1/callbacks/${channelOf(kind)}/${provider}`

/**
 * The instance's own provider as a project sees it that has no other, and only while it has trouble:
 * whose mail waits has to see why. What the operator has set up stays theirs.
 */
export function instanceRecord(row: ConfigRow | undefined): ReturnType<typeof record> | undefined {
  if (row?.project_id !== INSTANCE || row.status !== "error") return undefined
  const { kind, provider, status, last_error, paused_until, trouble_since } = row
  const since = trouble_since ?? row.updated_at
  return {
    id: INSTANCE_NAME,
    kind,
    provider,
    name: INSTANCE_NAME,
    priority: 0,
    enabled: true,
    status,
    last_error,
    next_probe_at: paused_until,
    credentials: {},
    settings: {},
    callback_url: null,
    created_at: since,
    updated_at: since,
  }
}

/** Without what is kept there besides. */
export function shownSettings({ settings }: ConfigRow): ConfigSettings {
  const { max_per_second, spf } = settings as ConfigSettings
  return { ...(max_per_second !== undefined && { max_per_second }), ...(spf && { spf }) }
}

/** The shown settings after a change of some. */
export function changedSettings(before: ConfigRow, change: SettingsChange): ConfigSettings {
  const all = Object.entries({ ...shownSettings(before), ...change })
  return Object.fromEntries(all.filter(([, value]) => value !== null))
}

interface ConfigChanged {
  before?: ConfigRow
  after?: ConfigRow
}

/** Neither credentials nor what finds a callback; only that they were changed. */
const withoutSecrets = ({ credentials: _, callback_token_hash: __, ...row }: ConfigRow) => row

/** Writes down a change, in the transaction that makes it. */
export const tell = async (
  tx: Tx,
  by: audit.By,
  action: string,
  { before, after }: ConfigChanged,
  credentials_changed = false,
) => {
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
