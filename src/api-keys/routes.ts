import { type Static, Type as t } from "@sinclair/typebox"
import type { Secrets } from "../core/secrets"
import { millis, millisFrom } from "../core/time"
import type { Call } from "../http/call"
import { takeOrUndo } from "../http/idempotency"
import { asPage, type Cursors, pageQuery, readTime, windowOf } from "../http/page"
import type { Problems } from "../http/problems"
import { type AnyRoute, route } from "../http/route"
import { check } from "../http/validate"
import { isRange } from "../lib/ip-ranges"
import { nearest } from "../lib/nearest"
import type { Store } from "../store/store"
import * as apiKeys from "./api-keys"
import { isScope, SCOPES } from "./scopes"

const MOST_ADDRESSES = 100

const NewKey = t.Object({
  name: t.String({
    minLength: 1,
    maxLength: 200,
    pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$",
  }),
  mode: t.Optional(t.String()),
  scopes: t.Array(t.String(), { minItems: 1, maxItems: 50 }),
  expires_at: t.Optional(t.Union([t.String(), t.Null()])),
  ip_addresses: t.Optional(t.Array(t.String(), { maxItems: MOST_ADDRESSES })),
})

const Key = t.Object({
  id: t.String(),
  project_id: t.String(),
  name: t.String(),
  mode: t.Literal("live"),
  prefix: t.String(),
  last4: t.String(),
  scopes: t.Array(t.String()),
  status: t.Union([t.Literal("active"), t.Literal("revoked"), t.Literal("expired")]),
  ip_addresses: t.Array(t.String()),
  expires_at: t.Union([t.String(), t.Null()]),
  last_used_at: t.Union([t.String(), t.Null()]),
  last_used_ip: t.Union([t.String(), t.Null()]),
  created_by: t.Object({ type: t.String(), id: t.Union([t.String(), t.Null()]) }),
  created_at: t.String(),
  revoked_at: t.Union([t.String(), t.Null()]),
})

const keyQuery = pageQuery({
  status: t.Optional(t.Union([t.Literal("active"), t.Literal("revoked"), t.Literal("expired")])),
})

export interface KeyParts {
  store: Store
  cursors: Cursors
  secrets: Secrets
}

export function apiKeyRoutes({ store, cursors, secrets }: KeyParts): AnyRoute[] {
  const may = (scope: string): Pick<AnyRoute, "callers" | "scope"> => ({
    callers: ["key", "console"],
    scope,
  })
  const path = "/v1/api-keys/{key_id}"
  return [
    route<apiKeys.NewApiKey, unknown>({
      ...may("api_keys:write"),
      method: "POST",
      path: "/v1/api-keys",
      status: [201],
      summary: "Create an API key; its secret is shown once",
      body: NewKey,
      read: readNewKey,
      response: t.Composite([Key, t.Object({ key: t.String() })]),
      idempotent: true,
      sealed: true,
      handle: (call) => create(store, secrets, call),
    }),
    route<unknown, Static<typeof keyQuery>>({
      ...may("api_keys:read"),
      method: "GET",
      path: "/v1/api-keys",
      status: [200],
      summary: "List API keys",
      query: keyQuery,
      response: Key,
      handle: async ({ project_id, query, request }) => {
        const wanted = { status: query.status, ...windowOf(query, cursors) }
        const rows = await apiKeys.list(store.read, project_id, wanted)
        const total = () => apiKeys.count(store.read, project_id, { status: query.status })
        return asPage(request, query, cursors, { rows, total })
      },
    }),
    route({
      ...may("api_keys:read"),
      method: "GET",
      path,
      status: [200],
      summary: "One API key",
      response: Key,
      handle: async (call) => ({ data: await apiKeys.find(store.read, ...named(call)) }),
    }),
    route({
      ...may("api_keys:write"),
      method: "DELETE",
      path,
      status: [200],
      summary: "Revoke an API key at once",
      response: t.Composite([Key, t.Object({ deleted: t.Literal(true) })]),
      handle: async (call) => {
        const key = await store.tx((tx) => apiKeys.revoke(tx, ...named(call)))
        return { data: { ...key, deleted: true } }
      },
    }),
  ]
}

const named = ({ project_id, params }: Call): [string, string] => [project_id, params.key_id ?? ""]

async function create(store: Store, secrets: Secrets, call: Call<apiKeys.NewApiKey>) {
  const { caller, body, claim, project_id } = call
  apiKeys.mayGrant(caller, body.scopes)
  const { account_id, key_id } = caller
  const owner = { account_id, project_id, created_by: { type: "key", id: key_id } }
  const data = await store.tx(async (tx) => {
    const made = await apiKeys.create(tx, owner, body)
    await takeOrUndo(tx, claim, () => ({
      status: 201,
      answer: secrets.seal(JSON.stringify({ data: made }), claim?.request ?? ""),
    }))
    return made
  })
  return { data }
}

function readNewKey(body: unknown, problems: Problems): apiKeys.NewApiKey {
  check(NewKey, body, problems)
  const { name, mode, scopes, expires_at, ip_addresses } = (body ?? {}) as Static<typeof NewKey>
  const expiry = expires_at ? readTime("expires_at", expires_at, problems) : null
  if (problems.any) return NO_KEY
  if (mode !== undefined && mode !== "live") {
    const hint = "Only live keys are issued. To try without sending, use settings.sandbox."
    problems.add("mode", "invalid", mode === "test" ? hint : "Only `live`.")
  }
  for (const [at, scope] of scopes.entries()) {
    if (isScope(scope)) continue
    const known = nearest(scope, named_scopes)?.text
    const message = `There is no scope ${scope}; the nearest is ${known}.`
    problems.add(`scopes.${at}`, "invalid", message)
  }
  if (expiry && millisFrom(expiry) <= millis()) {
    problems.add("expires_at", "invalid", "This moment is past.")
  }
  for (const [at, range] of (ip_addresses ?? []).entries()) {
    if (!isRange(range)) problems.add(`ip_addresses.${at}`, "invalid", "An address or CIDR range.")
  }
  const unique = [...new Set(scopes)]
  return { name, scopes: unique, expires_at: expiry ?? null, ip_addresses: ip_addresses ?? [] }
}

const named_scopes = SCOPES.filter((scope) => scope !== "*")

const NO_KEY: apiKeys.NewApiKey = { name: "", scopes: [], expires_at: null, ip_addresses: [] }
