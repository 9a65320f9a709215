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

/** Without a wish of its own, a new key works from where its maker works. */
export const addressesFor = ({ ip_addresses }: Caller, wished: string[] | undefined): string[] =>
  wished ?? ip_addresses
