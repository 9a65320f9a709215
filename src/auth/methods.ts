import { fail } from "../core/errors"
import { emailKeyOf } from "./end-users"
import type { SignInMethod } from "./environment-settings"
import type { AuthEnvironment } from "./environments"

/** Throws 403 `forbidden` where the environment has turned this way in off. */
export function requireMethod({ settings }: AuthEnvironment, method: SignInMethod): void {
  if (settings.methods[method]) return
  const message = `The sign-in method ${method} is off in this environment.`
  fail("forbidden", message, { reason: "method_off", method })
}

/** Throws 403 `forbidden` for a new user whose address is in a domain that the environment blocks. */
export function requireEmailDomain({ settings }: AuthEnvironment, email: string): void {
  const domain = emailKeyOf(email).split("@").at(-1) ?? ""
  if (!settings.blocked_email_domains.includes(domain)) return
  const message = `This environment takes no users with an address in ${domain}.`
  fail("forbidden", message, { reason: "email_domain_not_allowed" })
}
