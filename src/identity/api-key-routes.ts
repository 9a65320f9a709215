import { type Static, Type as t } from "@sinclair/typebox"
import * as domains from "../domains/domains"
import { nameText, oneOf, orNull } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { asPage, type Cursors, keyById, pageQuery, windowOf } from "../http/page"
import type { Problems } from "../http/problems"
import { type AnyRoute, route } from "../http/route"
import { check } from "../http/validate"
import type { Store } from "../store/store"
import * as apiKeys from "./api-keys"
import { asOwn, mayGrant, mayOutlive, mayReach } from "./granting"
import {
  ALL,
  addressList,
  by,
  changingRoutes,
  idOf,
  ONE,
  readExpiry,
  readScopes,
  refuseOddRanges,
  scopeList,
} from "./key-change-routes"
import * as changes from "./key-changes"
import { Key, status, WithSecret } from "./key-schemas"

const NewKey = t.Object({
  name: nameText(),
  mode: t.Optional(t.String()),
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

const Rotation = t.Object({
  overlap_hours: t.Optional(t.Number({ minimum: 0, maximum: 72, default: 24 })),
})

interface WantedKey {
  name: string
  scopes: string[]
  domain_id: string | null
  /** Undefined, here and below: as the caller's own. */
  expires_at: string | null | undefined
  ip_addresses: string[] | undefined
}

const keyQuery = pageQuery({ status: t.Optional(status) })

export interface KeyParts {
  store: Store
  cursors: Cursors
}

export const apiKeyRoutes = (parts: KeyParts): AnyRoute[] => [
  ...makingRoutes(parts),
  ...readingRoutes(parts),
  ...changingRoutes(parts),
]

/** What answers with a secret; it is sealed where a repetition may ask for it. */
const makingRoutes = ({ store }: KeyParts): AnyRoute[] => [
  route({
    ...by("POST", ALL, 201),
    summary: "Create an API key",
    description:
      "Only this answer shows `key`. It cannot be shown again. You can grant only scopes that you have.",
    body: NewKey,
    example: { name: "website", scopes: ["email:send", "email:read"] },
    read: readNewKey,
    response: WithSecret,
    idempotent: true,
    sealed: true,
    handle: async (call) => {
      const { caller, body } = call
      const wanted = { ...body, ...asOwn(caller, body) }
      mayOutlive(caller, wanted.expires_at)
      mayGrant(caller, wanted.scopes)
      mayReach(caller, wanted.ip_addresses)
      const { account_id, project_id, actor } = caller
      if (wanted.domain_id !== null) await domains.find(store.read, project_id, wanted.domain_id)
      const owner = { account_id, project_id, created_by: { type: actor.type, id: actor.id } }
      return answerOnce(store, call.claim, (tx) => apiKeys.create(tx, owner, wanted, caller))
    },
  }),
  route({
    ...by("POST", `${ONE}/rotate`, 201),
    summary: "Replace a key by a new one",
    description:
      "The new key has the same name, scopes and allowlist. The old key works for `overlap_hours` more hours.",
    body: Rotation,
    example: { overlap_hours: 24 },
    response: WithSecret,
    idempotent: true,
    sealed: true,
    handle: (call) => {
      const { overlap_hours = 24 } = call.body
      return answerOnce(store, call.claim, (tx) =>
        changes.rotate(tx, call.caller, idOf(call), overlap_hours),
      )
    },
  }),
]

const readingRoutes = ({ store, cursors }: KeyParts): AnyRoute[] => [
  route({
    ...by("GET", ALL),
    summary: "List API keys, newest first",
    description: "The list does not show the keys themselves. `prefix` and `last4` identify them.",
    query: keyQuery,
    response: Key,
    handle: async (call) => {
      const { project_id, query } = call
      const byId = keyById((id) => apiKeys.find(store.read, project_id, id))
      const wanted = { status: query.status, ...(await windowOf(call, cursors, byId)) }
      const rows = await apiKeys.list(store.read, project_id, wanted)
      const total = () => apiKeys.count(store.read, project_id, { status: query.status })
      return asPage(call, cursors, { rows, total })
    },
  }),
  route({
    ...by("GET", ONE),
    summary: "Show one API key",
    description: "`last_used_at` and `last_used_ip` are updated at most once a minute.",
    response: Key,
    handle: async (call) => ({
      data: await apiKeys.find(store.read, call.project_id, idOf(call)),
    }),
  }),
]

function readNewKey(body: unknown, problems: Problems): WantedKey {
  check(NewKey, body, problems)
  const wanted = (body ?? {}) as NewKey
  const { name, mode, expires_at, ip_addresses } = wanted
  const expiry = readExpiry(expires_at, problems)
  if (problems.any) return NO_KEY
  if (mode !== undefined && mode !== "live") {
    const hint = "Only live keys are issued. To try without sending, use settings.sandbox."
    problems.add("mode", "invalid", mode === "test" ? hint : "The mode must be `live`.")
  }
  const unique = readScopes(scopesIn(wanted, problems), problems)
  refuseOddRanges(ip_addresses ?? [], problems)
  const domain_id = wanted.domain_id ?? null
  return { name, scopes: unique, domain_id, expires_at: expiry, ip_addresses }
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

const NO_KEY: WantedKey = {
  name: "",
  scopes: [],
  domain_id: null,
  expires_at: null,
  ip_addresses: [],
}
