import { type Static, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { isPast } from "../core/time"
import * as domains from "../domains/domains"
import { nameText, oneOf, orNull, ruledText } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { nounRows } from "../http/noun-rows"
import { type ListParts, pageQuery, readTime } from "../http/page"
import { type AnyRoute, projectRow, route } from "../http/route"
import { isRange } from "../lib/ip-ranges"
import { nearest } from "../lib/text"
import type { Tx } from "../store/store"
import * as apiKeys from "./api-keys"
import { ApiKey, ApiKeyWithSecret, KeyStatus, RevokedApiKey } from "./schemas"
import { isScope, SCOPES } from "./scopes"

const MOST_ADDRESSES = 100
const MOST_SCOPES = 50

const named_scopes = SCOPES.filter((scope) => scope !== "*")

const scopeText = ruledText({}, (scope) => {
  if (isScope(scope)) return undefined
  const near = nearest(scope, named_scopes)
  const hint = near ? ` The nearest is ${near}.` : ""
  return ["invalid", `There is no scope ${scope}.${hint}`]
})

const BAD_RANGE = "The value must be an IP address or a CIDR range, such as 203.0.113.0/24."
const rangeText = ruledText({}, (range) => (isRange(range) ? undefined : ["invalid", BAD_RANGE]))

const SANDBOX = "Only live keys are issued. To try without sending, use settings.sandbox."
const modeText = ruledText({}, (mode) => {
  if (mode === "live") return undefined
  return ["invalid", mode === "test" ? SANDBOX : "The mode must be `live`."]
})

const scopeList = t.Array(scopeText, { minItems: 1, maxItems: MOST_SCOPES })
const addressList = t.Array(rangeText, { maxItems: MOST_ADDRESSES })

const NewKey = t.Object({
  name: nameText(),
  mode: t.Optional(modeText),
  scopes: t.Optional(scopeList),
  permission: t.Optional(
    t.Union([oneOf("full_access", "sending_access"), t.Null()], {
      description:
        "Use it instead of `scopes`. `full_access` means `*`, `sending_access` means `email:send`.",
    }),
  ),
  domain_id: t.Optional(
    orNull(
      t.String({
        description:
          "The only domain that the key can send from. Needs the permission `sending_access`.",
      }),
    ),
  ),
  expires_at: t.Optional(orNull(t.String())),
  ip_addresses: t.Optional(addressList),
})

type NewKey = Static<typeof NewKey>

const KeyPatch = t.Object({
  name: t.Optional(nameText()),
  scopes: t.Optional(scopeList),
  expires_at: t.Optional(orNull(t.String())),
})

const Allowlist = t.Object({ ip_addresses: addressList })

const Rotation = t.Object({
  overlap_hours: t.Optional(t.Number({ minimum: 0, maximum: 72, default: 24 })),
})

const keyQuery = pageQuery({ status: t.Optional(KeyStatus) })

const ALL = "/v1/api-keys"
const ONE = `${ALL}/{key_id}`

const READ = "api_keys:read"
const WRITE = "api_keys:write"

export const apiKeyRoutes = (parts: ListParts): AnyRoute[] => [
  ...makingRoutes(parts),
  ...plainRoutes(parts),
  ...changingRoutes(parts),
]

/** What answers with a secret; it is sealed where a repetition may ask for it. */
const makingRoutes = ({ store }: ListParts): AnyRoute[] => [
  route({
    ...projectRow("POST", ALL, WRITE, 201),
    summary: "Create an API key",
    description:
      "Only this answer shows `key`. It cannot be shown again. You can grant only scopes that you have.",
    body: NewKey,
    example: { name: "website", scopes: ["email:send", "email:read"] },
    read: readNewKey,
    response: ApiKeyWithSecret,
    idempotent: true,
    sealed: true,
    handle: async (call) => {
      const { caller } = call
      const wanted = apiKeys.grantable(caller, call.body)
      const { domain_id = null } = wanted
      if (domain_id !== null) await domains.find(store.read, caller.project_id, domain_id)
      const owner = apiKeys.ownedBy(caller)
      const make = (tx: Tx) => apiKeys.create(tx, owner, wanted, caller)
      return answerOnce(store, call.claim, make)
    },
  }),
  route({
    ...projectRow("POST", `${ONE}/rotate`, WRITE, 201),
    summary: "Replace a key by a new one",
    description:
      "The new key has the same name, scopes and allowlist. The old key works for `overlap_hours` more hours.",
    body: Rotation,
    example: { overlap_hours: 24 },
    response: ApiKeyWithSecret,
    idempotent: true,
    sealed: true,
    handle: (call) => {
      const { caller, params, body } = call
      const { overlap_hours = 24 } = body
      const make = (tx: Tx) => apiKeys.rotate(tx, caller, params.key_id, overlap_hours)
      return answerOnce(store, call.claim, make)
    },
  }),
]

const plainRoutes = (parts: ListParts): AnyRoute[] => {
  const rows = nounRows(apiKeys.apiKey, ApiKey, [READ, WRITE], parts)
  return [
    rows.list(ALL, {
      summary: "List API keys, newest first",
      description:
        "The list does not show the keys themselves. `prefix` and `last4` identify them.",
      query: keyQuery,
      filter: ({ status }) => apiKeys.ofStatus(status),
    }),
    rows.get(ONE, {
      summary: "Show one API key",
      description: "`last_used_at` and `last_used_ip` are updated at most once a minute.",
    }),
    rows.change(ONE, {
      summary: "Change the name, scopes or expiry of a key",
      description: "You can only remove scopes. You need every scope that the key has.",
      body: KeyPatch,
      example: { name: "website", scopes: ["email:send"] },
      read: readKeyPatch,
      errors: ["conflict"],
      change: apiKeys.patch,
    }),
  ]
}

const changingRoutes = ({ store }: ListParts): AnyRoute[] => [
  route({
    ...projectRow("PUT", `${ONE}/ip-whitelist`, WRITE),
    summary: "Replace the IP allowlist of a key",
    description:
      "The list has addresses and CIDR ranges, IPv4 or IPv6. Requests from other addresses get 403 `ip_not_allowed`. An empty list allows all addresses.",
    body: Allowlist,
    example: { ip_addresses: ["203.0.113.0/24", "2001:db8::7"] },
    response: ApiKey,
    errors: ["conflict"],
    handle: async ({ caller, params, body }) => ({
      data: await store.tx((tx) => apiKeys.allowlist(tx, caller, params.key_id, body.ip_addresses)),
    }),
  }),
  route({
    ...projectRow("DELETE", ONE, WRITE),
    self: "key_id",
    summary: "Revoke an API key at once",
    description:
      "The next request with the key is refused. A key may always revoke itself. A repetition gets the same answer.",
    response: RevokedApiKey,
    handle: async ({ caller, params }) => {
      const key = await store.tx((tx) => apiKeys.revokeAs(tx, caller, params.key_id))
      return { data: { ...key, deleted: true as const } }
    },
  }),
]

function readNewKey(wanted: NewKey, problems: Problems): apiKeys.WantedApiKey {
  const { name, ip_addresses } = wanted
  const expires_at = readExpiry(wanted.expires_at, problems)
  const scopes = [...new Set(scopesIn(wanted, problems))]
  return { name, scopes, domain_id: wanted.domain_id ?? null, expires_at, ip_addresses }
}

const SCOPES_OF = { full_access: ["*"], sending_access: ["email:send"] }

/** Said as scopes, or as the permission that other services know. */
function scopesIn({ scopes, permission, domain_id }: NewKey, problems: Problems): string[] {
  if (scopes && permission) {
    problems.add("permission", "invalid", "Give either `scopes` or `permission`, not both.")
  }
  if (domain_id && permission !== "sending_access") {
    const message = "Only a key with the permission `sending_access` can be bound to a domain."
    problems.add("domain_id", "invalid", message)
  }
  const wanted = scopes ?? (permission ? SCOPES_OF[permission] : undefined)
  if (!wanted) problems.add("scopes", "required", "The field is required.")
  return wanted ?? []
}

function readKeyPatch(
  { scopes, expires_at, ...rest }: Static<typeof KeyPatch>,
  problems: Problems,
): apiKeys.ApiKeyPatch {
  const expiry = readExpiry(expires_at, problems)
  return {
    ...rest,
    ...(scopes !== undefined && { scopes: [...new Set(scopes)] }),
    ...(expiry !== undefined && { expires_at: expiry }),
  }
}

/** Null is "never", undefined is "not said". */
function readExpiry(given: string | null | undefined, problems: Problems) {
  if (given === null || given === undefined) return given
  const expiry = readTime("expires_at", given, problems)
  if (expiry && isPast(expiry)) {
    problems.add("expires_at", "invalid", "This time is in the past. Give a later one.")
  }
  return expiry
}
