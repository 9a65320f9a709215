import { sql } from "drizzle-orm"
import {
  bool,
  id,
  index,
  int,
  json,
  key,
  primaryKey,
  ref,
  table,
  text,
  time,
  uniqueIndex,
} from "../store/columns"

export type ProviderKind = "email_provider" | "sms_provider" | "push_provider"

export type ProviderStatus = "active" | "error"

/** Who delivers for a project, in the order of `priority`: the lowest is asked first. */
export const providerConfigs = table(
  "provider_configs",
  {
    id: id(),
    account_id: ref().notNull(),
    project_id: ref().notNull(),
    kind: text<ProviderKind>().notNull(),
    provider: text().notNull(),
    name: text().notNull(),
    priority: int().notNull(),
    enabled: bool().notNull(),
    status: text<ProviderStatus>().notNull(),
    last_error: text(),
    /** Since when it refuses our login or cannot be reached; null while it works. */
    trouble_since: time(),
    /** While it refuses our login: when it is asked again. Until then nothing is handed to it. */
    paused_until: time(),
    /** The one message that may ask it meanwhile. */
    probe_message_id: ref(),
    /** A JSON object, sealed; null where the provider needs none. */
    credentials: text(),
    /**
     * `max_per_second`, `spf`; the `host` of the credentials, which is no secret; `sns_account`, whose
     * topics may speak.
     */
    settings: json<Record<string, unknown>>().notNull(),
    /** Of the token in a callback's address, which is made from the id; null where nobody calls. */
    callback_token_hash: text(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (config) => [
    uniqueIndex("provider_configs_by_name").on(
      config.project_id,
      config.kind,
      config.provider,
      config.name,
    ),
    uniqueIndex("provider_configs_by_callback").on(config.callback_token_hash),
    index("provider_configs_in_trouble").on(config.id).where(sql`status = 'error'`),
  ],
)

/**
 * The instance's own provider while it refuses our login: one row, which all nodes share, and none
 * while it takes the login.
 */
export const instanceRefusals = table("instance_refusals", {
  id: key(),
  provider: text().notNull(),
  reason: text().notNull(),
  paused_until: time().notNull(),
  probe_message_id: ref(),
  began_at: time().notNull(),
})

/** Which message a provider's own id stands for: its notifications know no other. */
export const providerReceipts = table(
  "provider_receipts",
  {
    /** Or `instance`. */
    config_id: text().notNull(),
    provider_message_id: text().notNull(),
    project_id: ref().notNull(),
    message_id: ref().notNull(),
    created_at: time().notNull(),
  },
  (receipt) => [
    primaryKey({ columns: [receipt.config_id, receipt.provider_message_id] }),
    index("provider_receipts_by_message").on(receipt.message_id),
  ],
)
