import { newId } from "../../core/ids"
import { now } from "../../core/time"
import { bumpAll } from "../../store/counters"
import type { Tx } from "../../store/store"
import type { EndUserRow } from "../end-users"
import { requireAllowedDomain } from "../methods"
import { memberCounts, type OrganizationRow } from "../organization-rows"
import { memberships } from "./tables"

export type MembershipRow = typeof memberships.$inferSelect

/**
 * Makes a locked user a member of an organization of their environment, whose row the caller has locked, too.
 * Undefined where they are one already, which changes nothing. Throws 403 `forbidden` where the organization does not
 * allow the domain of their address.
 */
export async function joinOrganization(
  tx: Tx,
  user: EndUserRow,
  organization: OrganizationRow,
  role: string,
  permissions: string[] = [],
): Promise<MembershipRow | undefined> {
  const { id: user_id, project_id, environment_id } = user
  const at = now()
  const membership = {
    ...{ id: newId(), project_id, environment_id, organization_id: organization.id, user_id },
    ...{ role, permissions, created_at: at, updated_at: at },
  }
  const made = await tx.insert(memberships).values(membership).onConflictDoNothing().returning()
  if (made.length === 0) return undefined
  requireAllowedDomain(organization.allowed_email_domains, user.email)
  await bumpAll(tx, memberCounts(membership, 1))
  return membership
}
