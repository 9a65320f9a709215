import { sql } from "drizzle-orm"
import {
  bool,
  bytewiseText,
  id,
  index,
  json,
  ref,
  table,
  text,
  time,
  uniqueIndex,
} from "../../store/columns"
import { life } from "../../store/life"

/** Groups of users. Each environment has a Default one, and every user of it is a member there. */
export const organizations = table(
  "organizations",
  {
    id: id(),
    project_id: ref().notNull(),
    application_id: ref().notNull(),
    environment_id: ref().notNull(),
    name: text().notNull(),
    slug: text().notNull(),
    /** Name and slug, in the form for searching. */
    search_key: text().notNull().default(""),
    mfa_required: bool().notNull().default(false),
    /** Empty lets in every address. */
    allowed_email_domains: json<string[]>().notNull().default([]),
    metadata: json<Record<string, unknown>>().notNull().default({}),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (organization) => [
    uniqueIndex("organizations_by_slug").on(organization.environment_id, organization.slug),
    index("organizations_by_environment").on(organization.environment_id, organization.id),
    index("organizations_by_project").on(organization.project_id, organization.id),
  ],
)
life(organizations, {
  owner: "project",
  ends: "never",
  names: { environment_id: "auth_environments" },
  counts: { name: "auth_organizations", by: ["environment_id"] },
})

export const memberships = table(
  "memberships",
  {
    id: id(),
    project_id: ref().notNull(),
    environment_id: ref().notNull(),
    organization_id: ref().notNull(),
    user_id: ref().notNull(),
    /** `owner`, `admin`, `member`, or another text without special rights. */
    role: text().notNull(),
    permissions: json<string[]>().notNull(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (membership) => [
    uniqueIndex("memberships_by_organization").on(membership.organization_id, membership.user_id),
    index("memberships_in_organization").on(membership.organization_id, membership.id),
    index("memberships_of_owners").on(membership.organization_id).where(sql`role = 'owner'`),
    index("memberships_by_user").on(membership.user_id, membership.organization_id),
    index("memberships_by_project").on(membership.project_id, membership.id),
  ],
)
life(memberships, {
  owner: "project",
  ends: "never",
  names: { user_id: "users", organization_id: "organizations" },
  counts: { name: "memberships", by: ["organization_id"] },
})

export const organizationInvitations = table(
  "organization_invitations",
  {
    id: id(),
    project_id: ref().notNull(),
    environment_id: ref().notNull(),
    organization_id: ref().notNull(),
    email: text().notNull(),
    /** The email in the form in which addresses compare. */
    email_key: bytewiseText().notNull(),
    role: text().notNull(),
    /** It is pending while both are null and it has not expired. */
    accepted_at: time(),
    revoked_at: time(),
    expires_at: time().notNull(),
    created_at: time().notNull(),
  },
  (invitation) => [
    index("organization_invitations_by_organization").on(invitation.organization_id, invitation.id),
    index("organization_invitations_by_address").on(
      invitation.organization_id,
      invitation.email_key,
    ),
    index("organization_invitations_of_address").on(invitation.project_id, invitation.email_key),
    index("organization_invitations_by_project").on(invitation.project_id, invitation.id),
  ],
)
life(organizationInvitations, {
  owner: "project",
  ends: "never",
  names: { organization_id: "organizations" },
  personal: { found_by: { address: "email_key" } },
})
