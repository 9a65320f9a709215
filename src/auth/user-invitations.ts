import type { Static } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { secondsFromNow } from "../core/time"
import { answerOnce, type Claim } from "../http/idempotency"
import type { Caller } from "../identity/caller"
import { rowForUpdate } from "../store/rows"
import type { AuthParts } from "./auth-parts"
import { byEmail, insertUser, toServerResponse } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { LINKS, prepareLink } from "./mailed-links"
import { recordUser, refuseSame } from "./managed-users"
import { requireAllowedDomain, requireEmailDomain } from "./methods"
import { noOrganization, ofEnvironment, organizationIn } from "./organization-rows"
import { joinNewly } from "./organizations/join"
import { requireWritable } from "./organizations/organization-access"
import { organizations } from "./organizations/tables"
import { requireRedirect } from "./redirects"
import { readEmail, type UserInvitation } from "./user-input"

/**
 * Mails an invitation: the user is in every list as `invited`, and no sign-in knows them before `register` with the
 * token. Throws 409 `conflict`, 403 `forbidden` for a domain that is not let in and `plan_upgrade_required`, 422
 * `invalid_url`, 503 `email_not_configured`.
 */
export async function invite(
  parts: AuthParts,
  environment: AuthEnvironment,
  caller: Caller,
  { email, name = null, organization_id, role, redirect_url }: Static<typeof UserInvitation>,
  claim: Claim | undefined,
) {
  const { store } = parts
  const place = organization_id ?? environment.default_organization_id
  const organization = await organizationIn(store.read, environment, place)
  await requireWritable(store.read, caller, { environment, organization })
  requireEmailDomain(environment, email)
  requireAllowedDomain(organization.allowed_email_domains, email)
  requireRedirect(environment, redirect_url)
  if (await byEmail(store.read, environment, email))
    return refuseSame(store.read, environment, { email })
  const wish = { kind: "invitation" as const, to: { email, name }, redirect_url }
  const letter = await prepareLink(parts, environment, wish)
  return answerOnce(store, claim, async (tx) => {
    const user = await insertUser(tx, environment, { email, name, status: "invited" })
    if (!user) return refuseSame(tx, environment, { email })
    const own = ofEnvironment(environment)
    const locked = (await rowForUpdate(tx, organizations, place, own)) ?? noOrganization()
    await joinNewly(tx, user, locked, role ?? "member")
    await letter.accept(tx, user.id)
    await recordUser(tx, caller, user, "invited", { after: toServerResponse(user) })
    const expires_at = secondsFromNow(LINKS.invitation.seconds)
    return { id: user.id, email, status: "invited" as const, expires_at }
  })
}

/** Reads the one address. */
export function readInvitation(given: Static<typeof UserInvitation>, problems: Problems) {
  return { ...given, email: readEmail(given.email, problems) ?? "" }
}
