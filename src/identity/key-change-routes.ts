import { type Static, Type as t } from "@sinclair/typebox"
import { millis, millisFrom } from "../core/time"
import { nameText, orNull } from "../http/field-schemas"
import { readTime } from "../http/page"
import type { Problems } from "../http/problems"
import { type AnyRoute, route } from "../http/route"
import { check } from "../http/validate"
import { isRange } from "../lib/ip-ranges"
import { nearest } from "../lib/text"
import type { Store } from "../store/store"
import * as changes from "./key-changes"
import { Key, Revoked } from "./key-schemas"
import { isScope, SCOPES } from "./scopes"

const MOST_ADDRESSES = 100
const MOST_SCOPES = 50

export const scopeList = t.Array(t.String(), { minItems: 1, maxItems: MOST_SCOPES })
export const addressList = t.Array(t.String(), { maxItems: MOST_ADDRESSES })

const KeyPatch = t.Object({
  name: t.Optional(nameText()),
  scopes: t.Optional(scopeList),
  expires_at: t.Optional(orNull(t.String())),
})

const Allowlist = t.Object({ ip_addresses: addressList })

export const ALL = "/v1/api-keys"
export const ONE = `${ALL}/{key_id}`

export const by = <const Path extends string>(
  method: AnyRoute["method"],
  path: Path,
  status: 200 | 201 = 200,
) => ({
  method,
  path,
  callers: ["key", "console"] as AnyRoute["callers"],
  scope: method === "GET" ? "api_keys:read" : "api_keys:write",
  status: [status] as [number],
})

export const idOf = ({ params }: { params: { key_id: string } }) => params.key_id

export const changingRoutes = ({ store }: { store: Store }): AnyRoute[] => [
  route({
    ...by("PATCH", ONE),
    summary: "Change the name, scopes or expiry of a key",
    description: "You can only remove scopes. You need every scope that the key has.",
    body: KeyPatch,
    example: { name: "website", scopes: ["email:send"] },
    read: readKeyPatch,
    response: Key,
    errors: ["conflict"],
    handle: async (call) => ({
      data: await store.tx((tx) => changes.patch(tx, call.caller, idOf(call), call.body)),
    }),
  }),
  route({
    ...by("PUT", `${ONE}/ip-whitelist`),
    summary: "Replace the IP allowlist of a key",
    description:
      "The list has addresses and CIDR ranges, IPv4 or IPv6. Requests from other addresses get 403 `ip_not_allowed`. An empty list allows all addresses.",
    body: Allowlist,
    example: { ip_addresses: ["203.0.113.0/24", "2001:db8::7"] },
    read: readAllowlist,
    response: Key,
    errors: ["conflict"],
    handle: async (call) => ({
      data: await store.tx((tx) => changes.allowlist(tx, call.caller, idOf(call), call.body)),
    }),
  }),
  route({
    ...by("DELETE", ONE),
    self: "key_id",
    summary: "Revoke an API key at once",
    description:
      "The next request with the key is refused. A key may always revoke itself. A repetition gets the same answer.",
    response: Revoked,
    handle: async (call) => {
      const key = await store.tx((tx) => changes.revoke(tx, call.caller, idOf(call)))
      return { data: { ...key, deleted: true as const } }
    },
  }),
]

function readKeyPatch(body: unknown, problems: Problems): changes.WantedChange {
  check(KeyPatch, body, problems)
  const { name, scopes, expires_at } = (body ?? {}) as Static<typeof KeyPatch>
  const expiry = readExpiry(expires_at, problems)
  if (problems.any) return {}
  return {
    ...(name !== undefined && { name }),
    ...(scopes !== undefined && { scopes: readScopes(scopes, problems) }),
    ...(expiry !== undefined && { expires_at: expiry }),
  }
}

function readAllowlist(body: unknown, problems: Problems): string[] {
  check(Allowlist, body, problems)
  if (problems.any) return []
  const { ip_addresses } = body as Static<typeof Allowlist>
  refuseOddRanges(ip_addresses, problems)
  return ip_addresses
}

/** Null is "never", undefined is "not said". */
export function readExpiry(given: string | null | undefined, problems: Problems) {
  if (given === null || given === undefined) return given
  const expiry = readTime("expires_at", given, problems)
  if (expiry && millisFrom(expiry) <= millis()) {
    problems.add("expires_at", "invalid", "This time is in the past. Give a later one.")
  }
  return expiry
}

const named_scopes = SCOPES.filter((scope) => scope !== "*")

export function readScopes(scopes: string[], problems: Problems): string[] {
  for (const [at, scope] of scopes.entries()) {
    if (isScope(scope)) continue
    const known = nearest(scope, named_scopes)?.text
    const message = `There is no scope ${scope}. The nearest is ${known}.`
    problems.add(`scopes.${at}`, "invalid", message)
  }
  return [...new Set(scopes)]
}

export function refuseOddRanges(ranges: string[], problems: Problems) {
  for (const [at, range] of ranges.entries()) {
    if (isRange(range)) continue
    const message = "The value must be an IP address or a CIDR range, such as 203.0.113.0/24."
    problems.add(`ip_addresses.${at}`, "invalid", message)
  }
}
