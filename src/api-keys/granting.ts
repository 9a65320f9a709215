import type { Caller } from "../accounts/caller"
import { fail } from "../core/errors"
import { isInside } from "../lib/ip-ranges"
import { isWithinOwn } from "./scopes"

/** A caller hands on at most what he has himself. Throws 403 `forbidden`. */
export function mayGrant(caller: Caller, scopes: string[]) {
  if (isWithinOwn(caller.scopes, scopes)) return
  const wider = scopes.filter((scope) => !caller.scopes.includes(scope))
  fail("forbidden", `Nobody grants more than he has: ${wider.join(", ")}.`, {
    required_scope: wider[0],
  })
}

/**
 * A key that works from some addresses only makes none that works from others, lest its allowlist
 * be worth nothing. Throws 403 `forbidden`.
 */
export function mayReach({ ip_addresses: own }: Caller, ranges: string[]) {
  if (own.length === 0) return
  const outside = ranges.find((range) => !own.some((wide) => isInside(range, wide)))
  if (ranges.length > 0 && outside === undefined) return
  const what = outside ? `${outside} is` : "Every address would be"
  fail("forbidden", `${what} outside the allowlist of the key that asks.`, {
    required_scope: null,
  })
}

/** A key that ends makes none, itself included, that outlives it. Throws 422 `validation_error`. */
export function mayOutlive({ expires_at: own }: Caller, wished: string | null) {
  if (own === null || (wished !== null && wished <= own)) return
  const [path, code] = ["expires_at", "invalid"]
  const message = `Not later than the key that asks, which ends at ${own}.`
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
