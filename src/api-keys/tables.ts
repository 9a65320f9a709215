import { id, index, json, ref, table, text, time, uniqueIndex } from "../store/columns"

export const apiKeys = table(
  "api_keys",
  {
    id: id(),
    account_id: ref().notNull(),
    project_id: ref().notNull(),
    name: text().notNull(),
    /** The 8 characters after `svc_live_`: finds the row, proves nothing. */
    lookup: text().notNull(),
    key_hash: text().notNull(),
    prefix: text().notNull(),
    last4: text().notNull(),
    scopes: json<string[]>().notNull(),
    /** The only domain that it sends from. A domain that was deleted is none at all. */
    domain_id: ref(),
    ip_addresses: json<string[]>().notNull(),
    created_by: json<{ type: string; id: string | null }>().notNull(),
    expires_at: time(),
    last_used_at: time(),
    last_used_ip: text(),
    created_at: time().notNull(),
    revoked_at: time(),
    /** The key that a rotation put in its place. */
    successor_id: ref(),
  },
  (key) => [
    uniqueIndex("api_keys_by_lookup").on(key.lookup),
    index("api_keys_by_project").on(key.project_id, key.id),
  ],
)
