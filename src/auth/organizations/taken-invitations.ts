import { and, eq } from "drizzle-orm"
import { isPast, now } from "../../core/time"
import { projectCaller } from "../../identity/caller"
import { openLink, takeLink } from "../../sign-in/links"
import { rowById, rowForUpdate } from "../../store/rows"
import type { Reader, Tx } from "../../store/store"
import type { AuthEnvironment } from "../environments"
import { expiredLink, linksAmong } from "../mailed-links"
import type { OrganizationRow } from "../organization-rows"
import { userLinks } from "../tables"
import { requireWritable } from "./organization-access"
import { organizationInvitations, organizations } from "./tables"

export type OrganizationInvitationRow = typeof organizationInvitations.$inferSelect

export const INVITATION_STATUSES = ["pending", "accepted", "revoked", "expired"] as const

export function statusOf({
  accepted_at,
  revoked_at,
  expires_at,
}: OrganizationInvitationRow): (typeof INVITATION_STATUSES)[number] {
  if (accepted_at !== null) return "accepted"
  if (revoked_at !== null) return "revoked"
  return isPast(expires_at) ? "expired" : "pending"
}

/** What the reader of an invitation holds. */
export interface OpenedInvitation
  extends Pick<OrganizationInvitationRow, "id" | "organization_id" | "email_key"> {
  /** Of the mail, or the code that its page handed over. */
  token: string
}

const tokensIn = (environment: AuthEnvironment) =>
  linksAmong(environment, "organization_invitation", "organization_invitation_code")

/** Looking changes nothing. Undefined for a token that works no more, or that is of something else. */
export async function openInvitation(
  db: Reader,
  environment: AuthEnvironment,
  token: string,
): Promise<OpenedInvitation | undefined> {
  const link = await openLink(db, userLinks, token, tokensIn(environment))
  const invitation = await invitationOf(db, environment, link?.invitation_id)
  return invitation && { ...invitation, token }
}

async function invitationOf(
  db: Reader,
  { id, project_id }: AuthEnvironment,
  invitation_id: string | null | undefined,
): Promise<OrganizationInvitationRow | undefined> {
  const own = and(
    eq(organizationInvitations.project_id, project_id),
    eq(organizationInvitations.environment_id, id),
  )
  return rowById(db, organizationInvitations, invitation_id ?? "", own)
}

/** What the page of a link tells of the organization, and whether its invitation can be accepted. */
export async function invitedTo(
  db: Reader,
  environment: AuthEnvironment,
  { invitation_id }: { invitation_id: string | null },
): Promise<{ works: boolean; name: string | null }> {
  if (invitation_id === null) return { works: true, name: null }
  const invitation = await invitationOf(db, environment, invitation_id)
  const own = eq(organizations.project_id, environment.project_id)
  const organization =
    invitation && (await rowById(db, organizations, invitation.organization_id, own))
  if (!organization) return { works: false, name: null }
  const is_default = organization.id === environment.default_organization_id
  return {
    works: statusOf(invitation) === "pending",
    name: is_default ? null : organization.name,
  }
}

/**
 * Uses an invitation up, once, and returns the locked organization with the role that it gives. Throws 422
 * `otp_expired` for one that was accepted or revoked, and 403 `plan_upgrade_required`.
 */
export async function takeInvitation(
  tx: Tx,
  environment: AuthEnvironment,
  { token, id, organization_id }: OpenedInvitation,
): Promise<{ organization: OrganizationRow; role: string }> {
  const { project_id } = environment
  const own = eq(organizationInvitations.project_id, project_id)
  const ofProject = eq(organizations.project_id, project_id)
  // The organization first, as `revoke` does: two that wait for each other would have to begin again.
  const organization = await rowForUpdate(tx, organizations, organization_id, ofProject)
  const invitation = await rowForUpdate(tx, organizationInvitations, id, own)
  const caller = await projectCaller(tx, project_id)
  if (!organization || !invitation || !caller) return expiredLink()
  const works = statusOf(invitation) === "pending"
  if (!works || !(await takeLink(tx, userLinks, token, tokensIn(environment)))) expiredLink()
  await requireWritable(tx, caller, { environment, organization })
  const its = and(own, eq(organizationInvitations.id, id))
  await tx.update(organizationInvitations).set({ accepted_at: now() }).where(its)
  return { organization, role: invitation.role }
}
