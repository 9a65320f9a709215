import type { Static } from "@sinclair/typebox"
import { and, eq, gt, gte, isNull } from "drizzle-orm"
import { fail, tooMany } from "../../core/errors"
import { firstIdAt, newId } from "../../core/ids"
import { millis, now, secondsFromNow } from "../../core/time"
import { answerOnce } from "../../http/idempotency"
import type { Call } from "../../http/route"
import type { Caller } from "../../identity/caller"
import { fieldsOf } from "../../lib/record-fields"
import { closeLinks } from "../../sign-in/links"
import { countUpTo, type RowList, rowForUpdate, rowList } from "../../store/rows"
import type { Reader, Tx } from "../../store/store"
import type { AuthParts } from "../auth-parts"
import { byEmail, type EndUserRow, emailKeyOf, find, findForUpdate } from "../end-users"
import type { AuthEnvironment } from "../environments"
import { countInvitation } from "../guesses"
import { expiredLink, LINKS, prepareLink } from "../mailed-links"
import { requireAllowedDomain, requireEmailDomain } from "../methods"
import type { OrganizationRow } from "../organization-rows"
import { requireRedirect } from "../redirects"
import { userLinks } from "../tables"
import { type NewOrgInvitation, OrgInvitation } from "./invitation-schemas"
import { joinOrganization, type MembershipRow } from "./join"
import {
  findOrganization,
  isDefault,
  organizationForUpdate,
  recordOrganization,
  requireWritable,
} from "./organization-access"
import { memberships, organizationInvitations } from "./tables"
import {
  type OrganizationInvitationRow,
  openInvitation,
  statusOf,
  takeInvitation,
} from "./taken-invitations"

const { seconds } = LINKS.organization_invitation

/** Of an organization, while an invitation can be accepted. So no more than these are pending. */
const MOST_INVITATIONS = 1000

/** An organization is of one project; by both ids a database might walk the index of the project. */
const itsInvitations = ({ id }: OrganizationRow) => eq(organizationInvitations.organization_id, id)

/** The invitations to an organization, newest first. */
export const list = (
  db: Reader,
  organization: OrganizationRow,
): RowList<OrganizationInvitationRow> =>
  rowList(db, organizationInvitations, { of: itsInvitations(organization), missing: noInvitation })

const noInvitation = () => fail("not_found", "There is no such invitation.")

/** The OrgInvitation of the contract. */
export const toInvitation = (row: OrganizationInvitationRow) =>
  fieldsOf(OrgInvitation, { ...row, status: statusOf(row) })

/**
 * Mails an invitation. Throws 409 `conflict` for a member, for an address with a pending invitation, and beyond 1,000
 * in seven days. Throws 403 `forbidden` for a domain that is not let in and for a role above the caller's, and
 * `plan_upgrade_required`; 422 `invalid_url`, 503 `email_not_configured`, and 429 where the address had several.
 */
export async function invite(
  parts: AuthParts,
  { caller, claim }: Pick<Call, "caller" | "claim">,
  organization_id: string,
  { email, role = "member", redirect_url }: Static<typeof NewOrgInvitation>,
) {
  const { store, mail } = parts
  const right = role === "owner" ? "owner" : "admin"
  const place = await findOrganization(store.read, caller, organization_id, right)
  const { environment, organization, own } = place
  await requireWritable(store.read, caller, place)
  const invitee = await byEmail(store.read, environment, email)
  await requireUninvited(store.read, organization, email, invitee)
  requireEmailDomain(environment, email)
  requireAllowedDomain(organization.allowed_email_domains, email)
  await mail.requireSender(environment, email)
  requireRedirect(environment, redirect_url)
  const identifier = emailKeyOf(email)
  await countInvitation(parts, environment, { identifier, user_id: own?.user_id })

  const row = newInvitation(organization, { email, role })
  const inviter = own && (await find(store.read, environment.project_id, own.user_id)).name
  const letter = await prepareLink(parts, environment, {
    kind: "organization_invitation",
    to: { email, name: invitee?.name ?? null, locale: invitee?.locale ?? null },
    ...{ redirect_url, invitation_id: row.id },
    variables: { organization: isDefault(place) ? null : organization.name, inviter },
  })
  return answerOnce(store, claim, async (tx) => {
    await organizationForUpdate(tx, caller, organization_id, right)
    const known = await byEmail(tx, environment, email)
    await requireUninvited(tx, organization, email, known)
    await requireFew(tx, organization)
    await tx.insert(organizationInvitations).values(row)
    await letter.accept(tx, null)
    const record = toInvitation(row)
    await recordOrganization(tx, caller, organization, "member_invited", { after: record })
    return record
  })
}

function newInvitation(
  { id: organization_id, project_id, environment_id }: OrganizationRow,
  { email, role }: { email: string; role: string },
): OrganizationInvitationRow {
  return {
    ...{ id: newId(), project_id, environment_id, organization_id },
    ...{ email, email_key: emailKeyOf(email), role, accepted_at: null, revoked_at: null },
    ...{ expires_at: secondsFromNow(seconds), created_at: now() },
  }
}

/** Throws 409 `conflict`. */
async function requireUninvited(
  db: Reader,
  organization: OrganizationRow,
  email: string,
  user: EndUserRow | undefined,
): Promise<void> {
  if (user && (await isMember(db, organization, user))) refuseMember()
  const { email_key, accepted_at, revoked_at, expires_at } = organizationInvitations
  const pending = and(isNull(accepted_at), isNull(revoked_at), gt(expires_at, now()))
  const [same] = await db
    .select({ id: organizationInvitations.id })
    .from(organizationInvitations)
    .where(and(itsInvitations(organization), eq(email_key, emailKeyOf(email)), pending))
    .limit(1)
  if (!same) return
  const text = "This address is invited already. To mail it again, delete that invitation first."
  fail("conflict", text, { reason: "already_invited", id: same.id })
}

async function isMember(
  db: Reader,
  { id, project_id }: OrganizationRow,
  { id: user_id }: EndUserRow,
): Promise<boolean> {
  const own = and(
    eq(memberships.project_id, project_id),
    eq(memberships.organization_id, id),
    eq(memberships.user_id, user_id),
  )
  return (await db.select({ id: memberships.id }).from(memberships).where(own)).length > 0
}

const refuseMember = () =>
  fail("conflict", "The user is a member already.", { reason: "already_member" })

/** Counts every one of the last seven days: pending or not, it was a mail. */
async function requireFew(tx: Tx, organization: OrganizationRow): Promise<void> {
  const { id } = organizationInvitations
  const recent = gte(id, firstIdAt(millis() - seconds * 1000))
  const where = and(itsInvitations(organization), recent)
  const used = await countUpTo(tx, { rows: organizationInvitations, id, where }, MOST_INVITATIONS)
  if (used < MOST_INVITATIONS) return
  const text = `An organization invites at most ${MOST_INVITATIONS} people in seven days.`
  tooMany(text, MOST_INVITATIONS)
}

/** Its link works no more. Throws 404 `not_found` for one that was revoked, and 409 `conflict` for an accepted one. */
export async function revoke(
  tx: Tx,
  caller: Caller,
  organization_id: string,
  invitation_id: string,
): Promise<void> {
  const { organization } = await organizationForUpdate(tx, caller, organization_id, "admin")
  const own = itsInvitations(organization)
  const row = await rowForUpdate(tx, organizationInvitations, invitation_id, own)
  if (!row || row.revoked_at !== null) return noInvitation()
  if (row.accepted_at !== null)
    return fail("conflict", "The invitation was accepted.", { reason: "accepted" })
  const its = and(own, eq(organizationInvitations.id, row.id))
  await tx.update(organizationInvitations).set({ revoked_at: now() }).where(its)
  const { project_id, invitation_id: invited } = userLinks
  const links = and(eq(project_id, row.project_id), eq(invited, row.id))
  await closeLinks(tx, userLinks, links)
  const before = toInvitation(row)
  await recordOrganization(tx, caller, organization, "invitation_revoked", { before })
}

/**
 * The signed-in user becomes a member. Throws 422 `otp_expired` for a token that works no more, 403 `forbidden` where
 * their address is another one or is not verified, 409 `conflict` for a member, and as `takeInvitation`.
 */
export function accept(
  { store }: AuthParts,
  environment: AuthEnvironment,
  { id, project_id }: EndUserRow,
  token: string,
): Promise<MembershipRow> {
  return store.tx(async (tx) => {
    const user = await findForUpdate(tx, project_id, id)
    const opened = (await openInvitation(tx, environment, token)) ?? expiredLink()
    if (!user.email_verified || user.email_key !== opened.email_key) refuseAddress()
    const { organization, role } = await takeInvitation(tx, environment, opened)
    return (await joinOrganization(tx, user, organization, role)) ?? refuseMember()
  })
}

const refuseAddress = () =>
  fail("forbidden", "The invitation is for another email address than your verified one.", {
    reason: "email_mismatch",
  })
