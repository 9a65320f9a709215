import type { Static } from "@sinclair/typebox"
import { and, eq } from "drizzle-orm"
import { fail, type Problems } from "../core/errors"
import { newId } from "../core/ids"
import { now, secondsFromNow } from "../core/time"
import { answerOnce, type Claim } from "../http/idempotency"
import type { Caller } from "../identity/caller"
import { bumpAll } from "../store/counters"
import { rowById } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import type { AuthParts } from "./auth-parts"
import { byEmail, type EndUserRow, insertUser, toServerResponse } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { LINKS, prepareLink } from "./mailed-links"
import { recordUser, refuseSame } from "./managed-users"
import { requireEmailDomain } from "./methods"
import { memberCounts } from "./organization-rows"
import { memberships, organizations } from "./organizations/tables"
import { requireRedirect } from "./redirects"
import { readEmail, type UserInvitation } from "./user-input"

/**
 * Mails an invitation: the user is in every list as `invited`, and no sign-in knows them before `register` with the
 * token. Throws 409 `conflict`, 403 `forbidden` for a blocked domain, 422 `invalid_url`, 503 `email_not_configured`.
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
  await requireOrganization(store.read, environment, place)
  requireEmailDomain(environment, email)
  requireRedirect(environment, redirect_url)
  if (await byEmail(store.read, environment, email))
    return refuseSame(store.read, environment, { email })
  const wish = { kind: "invitation" as const, to: { email, name }, redirect_url }
  const letter = await prepareLink(parts, environment, wish)
  return answerOnce(store, claim, async (tx) => {
    const user = await insertUser(tx, environment, { email, name, status: "invited" })
    if (!user) return refuseSame(tx, environment, { email })
    await join(tx, user, place, role ?? "member")
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

async function requireOrganization(
  db: Reader,
  { id, project_id }: AuthEnvironment,
  wanted: string,
) {
  const own = and(eq(organizations.project_id, project_id), eq(organizations.environment_id, id))
  if (await rowById(db, organizations, wanted, own)) return
  fail("not_found", "This environment has no such organization.")
}

/** With this role; the user is a member of Default already. */
async function join(tx: Tx, user: EndUserRow, organization_id: string, role: string) {
  const { id: user_id, project_id, environment_id } = user
  const at = { created_at: now(), updated_at: now() }
  const row = { id: newId(), project_id, environment_id, organization_id, user_id, role }
  const made = await tx
    .insert(memberships)
    .values({ ...row, permissions: [], ...at })
    .onConflictDoNothing()
    .returning()
  if (made.length > 0) return bumpAll(tx, memberCounts(row, 1))
  const own = and(
    eq(memberships.organization_id, organization_id),
    eq(memberships.user_id, user_id),
  )
  await tx.update(memberships).set({ role }).where(own)
}
