import {
  bool,
  id,
  index,
  int,
  json,
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
    /** Until then nothing is handed to it; null while it works. */
    paused_until: time(),
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
  ],
)

/** Which message a provider's own id stands for: its notifications know no other. */
export const providerReceipts = table(
  "provider_receipts",
  {
    config_id: ref().notNull(),
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
