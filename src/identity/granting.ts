import { fail } from "../core/errors"
import { isInside } from "../lib/ip-ranges"
import type { Caller } from "./caller"
import { isWithinOwn } from "./scopes"

/** A caller grants at most the scopes that it has itself. Throws 403 `forbidden`. */
export function mayGrant(caller: Caller, scopes: string[]) {
  demandScopes(caller, scopes, "You cannot grant scopes that you do not have")
}

/**
 * A key is changed by callers that could do everything it does: otherwise a narrow key could lift
 * the allowlist or the end of a broad one. Throws 403 `forbidden`.
 */
export function mayChange(caller: Caller, key: { scopes: string[] }) {
  demandScopes(caller, key.scopes, "To change this key, you need every scope that it has. Missing")
}

function demandScopes(caller: Caller, scopes: string[], text: string) {
  if (isWithinOwn(caller.scopes, scopes)) return
  const missing = scopes.filter((scope) => !caller.scopes.includes(scope))
  fail("forbidden", `${text}: ${missing.join(", ")}.`, { required_scope: missing[0] })
}

/**
 * A key that works from some addresses only makes none that works from others, lest its allowlist
 * be worth nothing. Throws 403 `forbidden`.
 */
export function mayReach({ ip_addresses: own }: Caller, ranges: string[]) {
  if (own.length === 0) return
  const outside = ranges.find((range) => !own.some((wide) => isInside(range, wide)))
  if (ranges.length > 0 && outside === undefined) return
  const text = outside
    ? `${outside} is outside the allowlist of the key that you use.`
    : "The key that you use has an allowlist. The other key needs an allowlist within it."
  fail("forbidden", text, { required_scope: null })
}

/** A key that ends makes none, itself included, that outlives it. Throws 422 `validation_error`. */
export function mayOutlive({ expires_at: own }: Caller, wished: string | null) {
  if (own === null || (wished !== null && wished <= own)) return
  const [path, code] = ["expires_at", "invalid"]
  const message = `The key that you use expires at ${own}. Give that time or an earlier one.`
  fail("validation_error", `${path}: ${message}`, { fields: [{ path, code, message }] })
}

/** The earlier of two ends; null is never. */
export const earlier = (one: string | null, other: string | null): string | null =>
  one === null || (other !== null && other < one) ? other : one

/** Without a wish of its own, a new key works from where its maker works, and as long. */
export const asOwn = (
  { ip_addresses, expires_at }: Caller,
  wished: { ip_addresses: string[] | undefined; expires_at: string | null | undefined },
) => ({
  ip_addresses: wished.ip_addresses ?? ip_addresses,
  expires_at: wished.expires_at === undefined ? expires_at : wished.expires_at,
})
