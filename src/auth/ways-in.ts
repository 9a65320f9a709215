import { fail } from "../core/errors"
import type { EndUserRow } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { isOfGame } from "./social/identities"

/** How a user can get into their account now: what they have, as far as the environment allows it. */
export function waysIn({ settings: { methods } }: AuthEnvironment, user: EndUserRow): string[] {
  const by_mail = methods.magic_link || methods.email_otp
  // No switch of the environment turns the platforms of games off, but for their own configuration.
  const has_account = user.identities.some((one) => methods.oauth || isOfGame(one))
  const own: [way: string, is_open: boolean][] = [
    ["password", methods.password && user.password_hash !== null],
    ["email", by_mail && user.email_verified],
    ["phone", methods.phone_otp && user.phone_verified],
    ["device", methods.anonymous && user.anonymous_device_id !== null],
    ["passkey", methods.passkey && user.mfa_methods.includes("passkey")],
    ["identity", has_account],
  ]
  return own.flatMap(([way, is_open]) => (is_open ? [way] : []))
}

/**
 * Throws 409 `conflict` where the user could no more sign in, after the loss of a passkey or an identity. The caller
 * holds the user's row, so that two removals at once do not count on each other.
 */
export function requireWayIn(environment: AuthEnvironment, user: EndUserRow): void {
  if (waysIn(environment, user).length > 0) return
  const hint = "Add a password, a verified address or another account first."
  fail("conflict", `This is the only way into the account. ${hint}`, { reason: "last_way_in" })
}
