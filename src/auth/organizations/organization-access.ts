import { and, eq } from "drizzle-orm"
import { fail } from "../../core/errors"
import { type Caller, projectCaller } from "../../identity/caller"
import { upgradeRequired } from "../../plans/plans"
import { rowById, rowForUpdate } from "../../store/rows"
import type { Reader, Tx } from "../../store/store"
import { type AuthEnvironment, environmentById } from "../environments"
import type { OrganizationRow } from "../organization-rows"
import type { MembershipRow } from "./join"
import { memberships, organizations } from "./tables"

/** An organization, and where it is. */
export interface OwnedOrganization {
  environment: AuthEnvironment
  organization: OrganizationRow
}

interface OrganizationCall {
  caller: Caller
}

/** Each may do what those before it may. Every other text counts as `member`. */
const RANKED = ["member", "admin", "owner"] as const

type RankedRole = (typeof RANKED)[number]

/**
 * An organization that the caller can know: users those of their environment, credentials of an application those of
 * its environment. Throws 404 `not_found`. Users need a role there, too: `requireRole`.
 */
export async function findOrganization(
  db: Reader,
  { caller: { project_id, application } }: OrganizationCall,
  id: string,
): Promise<OwnedOrganization> {
  const organization = await rowById(
    db,
    organizations,
    id,
    eq(organizations.project_id, project_id),
  )
  const environment = organization && (await environmentById(db, organization.environment_id))
  if (!environment) return noOrganization()
  const is_theirs =
    application === null ||
    (application.id === environment.application.id &&
      (application.environment ?? environment.name) === environment.name)
  return is_theirs ? { environment, organization } : noOrganization()
}

/** Its row, locked: before those of its members and invitations. Throws 404 `not_found`. */
export const lockOrganization = async (
  tx: Tx,
  { id, project_id }: Pick<OrganizationRow, "id" | "project_id">,
): Promise<OrganizationRow> =>
  (await rowForUpdate(tx, organizations, id, eq(organizations.project_id, project_id))) ??
  noOrganization()

export const noOrganization = (): never => fail("not_found", "There is no such organization.")

/**
 * What a calling user is in the organization; null for keys and people of the console, whose scope was enough. Throws
 * 404 `not_found` for somebody that is no member, and 403 `forbidden` for a smaller role.
 */
export async function requireRole(
  db: Reader,
  { caller: { kind, end_user } }: OrganizationCall,
  { id, project_id }: Pick<OrganizationRow, "id" | "project_id">,
  wanted: RankedRole,
): Promise<MembershipRow | null> {
  if (kind !== "user") return null
  const membership = await membershipOf(db, { id, project_id }, end_user?.id ?? "")
  if (!membership) return noOrganization()
  if (rankOf(membership.role) >= rankOf(wanted)) return membership
  return fail("forbidden", `This needs the role ${wanted} in the organization.`, {
    required_role: wanted,
  })
}

const rankOf = (role: string): number => Math.max(0, RANKED.indexOf(role as RankedRole))

/** Undefined where the user is no member. */
export async function membershipOf(
  db: Reader,
  { id, project_id }: Pick<OrganizationRow, "id" | "project_id">,
  user_id: string,
): Promise<MembershipRow | undefined> {
  const own = and(
    eq(memberships.project_id, project_id),
    eq(memberships.organization_id, id),
    eq(memberships.user_id, user_id),
  )
  const [row] = await db.select().from(memberships).where(own)
  return row
}

/**
 * Throws 403 `plan_upgrade_required` where the plan has the Default organization only. Others, which an account has
 * from a larger plan, can be read but not changed.
 */
export async function requirePlan(
  db: Reader,
  { project_id, default_organization_id }: AuthEnvironment,
  organization?: Pick<OrganizationRow, "id">,
): Promise<void> {
  if (organization?.id === default_organization_id) return
  const { plan = "", limits } = (await projectCaller(db, project_id)) ?? {}
  const most = limits?.organizations
  if (most === null || (most !== undefined && most > 1)) return
  throw upgradeRequired("organizations", plan, "pro")
}
