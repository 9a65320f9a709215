import { and, eq } from "drizzle-orm"
import * as audit from "../../audit-log/audit-log"
import { fail } from "../../core/errors"
import type { Caller } from "../../identity/caller"
import { upgradeRequired } from "../../plans/plans"
import { forUpdate, isAskedId } from "../../store/columns"
import { total } from "../../store/counters"
import { rowById, rowForUpdate } from "../../store/rows"
import type { Reader, Tx } from "../../store/store"
import { type AuthEnvironment, environmentById, isWithin } from "../environments"
import { noOrganization, type OrganizationRow, organizationsIn } from "../organization-rows"
import type { MembershipRow } from "./join"
import { memberships, organizations } from "./tables"

/** What a route asks of a user. Owners are admins, too, and everybody there is a member. */
export type OrganizationRight = "member" | "admin" | "owner"

/** An organization that the caller may do something with. */
export interface ReachedOrganization {
  environment: AuthEnvironment
  organization: OrganizationRow
  /** The caller's own; null for keys and people of the console: they may do everything. */
  own: MembershipRow | null
}

/**
 * The organization, if the caller reaches it. Throws 404 `not_found` for one of another environment, and 403
 * `forbidden` for a user without the right there.
 */
export const findOrganization = async (
  db: Reader,
  caller: Caller,
  id: string,
  right: OrganizationRight,
): Promise<ReachedOrganization> =>
  reached(db, caller, await rowById(db, organizations, id, ofProject(caller)), right)

/** As `findOrganization`, with its row locked, as every change of its memberships needs it. */
export const organizationForUpdate = async (
  tx: Tx,
  caller: Caller,
  id: string,
  right: OrganizationRight,
): Promise<ReachedOrganization> =>
  reached(tx, caller, await rowForUpdate(tx, organizations, id, ofProject(caller)), right)

const ofProject = ({ project_id }: Caller) => eq(organizations.project_id, project_id)

async function reached(
  db: Reader,
  caller: Caller,
  organization: OrganizationRow | undefined,
  right: OrganizationRight,
): Promise<ReachedOrganization> {
  const environment = organization && (await environmentById(db, organization.environment_id))
  if (!environment || !isWithin(caller, environment)) return noOrganization()
  const { end_user } = caller
  if (!end_user) return { environment, organization, own: null }
  const [own] = await db.select().from(memberships).where(memberIs(organization, end_user.id))
  if (!own || !hasRight(own, right)) return refuseRole(right)
  return { environment, organization, own }
}

const memberIs = ({ id, project_id }: OrganizationRow, user_id: string) =>
  and(
    eq(memberships.project_id, project_id),
    eq(memberships.organization_id, id),
    isAskedId(memberships.user_id, user_id),
  )

const hasRight = ({ role }: MembershipRow, right: OrganizationRight) =>
  right === "member" || role === "owner" || role === right

/** Throws 403 `forbidden`. */
export function refuseRole(required_role: OrganizationRight): never {
  const text = `This needs the role ${required_role} in the organization.`
  return fail("forbidden", text, { required_role })
}

/** The membership of a user in an organization that is locked. Throws 404 `not_found`. */
export async function memberForUpdate(
  tx: Tx,
  organization: OrganizationRow,
  user_id: string,
): Promise<MembershipRow> {
  const found = tx.select().from(memberships).where(memberIs(organization, user_id))
  const [row] = await forUpdate(found)
  return row ?? fail("not_found", "The user is no member of this organization.")
}

/** Whether it is the one that every user of the environment is a member of. */
export const isDefault = ({
  environment,
  organization,
}: Pick<ReachedOrganization, "environment" | "organization">): boolean =>
  organization.id === environment.default_organization_id

/** Throws 409 `conflict`. */
export const refuseDefault = (why: string): never =>
  fail("conflict", `This is the Default organization. ${why}`, { reason: "default_organization" })

/** Throws 403 `plan_upgrade_required` where the plan has no room for one more in the environment. */
export async function requirePlanFor(
  db: Reader,
  { limits, plan }: Caller,
  environment: AuthEnvironment,
): Promise<void> {
  if (limits.organizations === null) return
  if ((await countIn(db, environment)) >= limits.organizations) throw planTooSmall(plan)
}

/**
 * Throws 403 `plan_upgrade_required` while the environment has more organizations than the plan: all but Default are
 * read-only then. What takes away stays possible: removing members, leaving, deleting.
 */
export async function requireWritable(
  db: Reader,
  { limits, plan }: Caller,
  found: Pick<ReachedOrganization, "environment" | "organization">,
): Promise<void> {
  if (limits.organizations === null || isDefault(found)) return
  if ((await countIn(db, found.environment)) > limits.organizations) throw planTooSmall(plan)
}

/** Default is one of them. */
const countIn = (db: Reader, { id, project_id }: AuthEnvironment) =>
  total(db, project_id, organizationsIn(id))

const planTooSmall = (plan: string) => upgradeRequired("organizations", plan, "pro")

/** Writes down what a key or somebody of the console did to an organization. What users do is theirs. */
export async function recordOrganization(
  tx: Tx,
  caller: Caller,
  { id }: OrganizationRow,
  verb: string,
  change: audit.AuditChange,
): Promise<void> {
  if (caller.end_user) return
  const { account_id, project_id } = caller
  const target = { type: "organization", id }
  const action = `organization.${verb}`
  await audit.record(tx, caller, { account_id, project_id, action, target, ...change })
}
