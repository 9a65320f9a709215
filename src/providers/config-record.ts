import * as audit from "../audit-log/audit-log"
import type { Secrets } from "../core/secrets"
import type { Tx } from "../store/store"
import { callbackToken } from "./callback-token"
import { masked, openCredentials } from "./credentials"
import type { providerConfigs } from "./tables"

export type ConfigRow = typeof providerConfigs.$inferSelect

/** What a project may say of a configuration, besides how to get in. */
export interface ConfigSettings {
  max_per_second?: number
  spf?: string[]
}

/** What is absent stays; null forgets a setting. */
export type SettingsChange = {
  [Name in keyof ConfigSettings]?: Required<ConfigSettings>[Name] | null
}

/** ProviderConfig of the contract. */
export function record(row: ConfigRow, secrets: Secrets, base_url: string) {
  const token = row.callback_token_hash === null ? null : callbackToken(secrets, row.id)
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
    credentials: masked(openCredentials(secrets, row)),
    settings: shownSettings(row),
    callback_url: token && `${base_url}/v1/callbacks/email/${row.provider}/${token}`,
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

/** Without what is kept there besides. */
export function shownSettings({ settings }: ConfigRow): ConfigSettings {
  const { host: _, sns_account: __, ...shown } = settings
  return shown
}

/** The shown settings after a change of some. */
export function changedSettings(before: ConfigRow, change: SettingsChange): ConfigSettings {
  const all = Object.entries({ ...shownSettings(before), ...change })
  return Object.fromEntries(all.filter(([, value]) => value !== null))
}

interface Change {
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
  { before, after }: Change,
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
