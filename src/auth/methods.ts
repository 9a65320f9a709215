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

/**
 * Throws 403 `forbidden` for a new user whose address is in a domain that the environment blocks, or that its Default
 * organization does not allow.
 */
export function requireEmailDomain(environment: AuthEnvironment, email: string): void {
  const { settings, allowed_email_domains } = environment
  if (settings.blocked_email_domains.includes(domainOf(email))) refuseDomain(email)
  requireAllowedDomain(allowed_email_domains, email)
}

/** Throws 403 `forbidden` for an address outside of the domains that an organization allows. None listed is every one. */
export function requireAllowedDomain(allowed_email_domains: string[], email: string | null): void {
  if (allowed_email_domains.length === 0) return
  if (email === null || !allowed_email_domains.includes(domainOf(email))) refuseDomain(email)
}

const domainOf = (email: string) => emailKeyOf(email).split("@").at(-1) ?? ""

function refuseDomain(email: string | null): never {
  const whose =
    email === null ? "without an email address" : `with an address in ${domainOf(email)}`
  return fail("forbidden", `Users ${whose} are not let in here.`, {
    reason: "email_domain_not_allowed",
  })
}
