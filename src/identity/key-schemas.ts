import { Type as t } from "@sinclair/typebox"
import { ACTOR_TYPES } from "../audit-log/tables"
import { id, maybe, rarely, text, time, word } from "../lib/record-fields"

export const status = word(["active", "revoked", "expired"])

const key = {
  id: id(),
  project_id: id(),
  name: text("website"),
  mode: t.Literal("live"),
  prefix: text("svc_live_a1b2c3d4", "The first 17 characters of the key."),
  last4: text("9zQx"),
  scopes: t.Array(text("email:send")),
  domain_id: rarely(id("The only domain that the key can send from.")),
  status,
  ip_addresses: t.Array(text("203.0.113.0/24"), {
    description: "Addresses from which the key works. An empty list allows all addresses.",
  }),
  expires_at: rarely(time()),
  last_used_at: maybe(time("The time of the last use, updated at most once a minute.")),
  last_used_ip: maybe(text("203.0.113.7")),
  created_by: t.Object({ type: word(ACTOR_TYPES), id: maybe(id()) }),
  created_at: time(),
  revoked_at: rarely(time()),
}

export const Key = t.Object(key, { title: "ApiKey" })

export const WithSecret = t.Object(
  { ...key, key: text("svc_live_a1b2c3d4…", "The key itself. It cannot be shown again.") },
  { title: "ApiKeyWithSecret" },
)

export const Revoked = t.Object({ ...key, deleted: t.Literal(true) }, { title: "RevokedApiKey" })
