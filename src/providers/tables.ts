import { sql } from "drizzle-orm"
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
import { life } from "../store/life"
import type { ProviderKind } from "./provider"

/**
 * The instance's own provider is one more configuration, of no project. The Max UUID (RFC 9562, 5.10)
 * stands for its account and its project. Answers and the log call it `instance`.
 */
export const INSTANCE = "ffffffff-ffff-ffff-ffff-ffffffffffff"

type ProviderStatus = "active" | "error"

/**
 * The providers of a project, in the order of `priority`: the lowest is asked first. The
 * project is `INSTANCE` for the instance's own, whose credentials are settings.
 */
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
    /** The message that may ask it meanwhile. Its own id: the one that comes next. */
    probe_message_id: ref(),
    /**
     * A JSON object, sealed; null where the provider needs none. Of the instance's own a mark that is
     * another one with other credentials.
     */
    credentials: text(),
    /**
     * `max_per_second`, `spf`; the credentials that are `is_public`; `callback_account`, the one whose
     * callbacks count; `refused_return_paths`, what a relay said of ours.
     */
    settings: json<Record<string, unknown>>().notNull(),
    /**
     * The hash of the token in a callback's address, which is made from the id; null for providers
     * without callbacks.
     */
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
life(providerConfigs, {
  owner: "project",
  ends: "never",
  sealed: {
    credentials: {
      what: "credentials of providers",
      remedy: "`belfry providers set` with the credentials of each provider",
      drop: "value",
    },
  },
})

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
life(providerReceipts, { owner: "project", ends: "with row", names: { message_id: "messages" } })

export type ConfigRow = typeof providerConfigs.$inferSelect
