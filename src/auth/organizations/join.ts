import { and, eq } from "drizzle-orm"
import { tooMany } from "../../core/errors"
import { newId } from "../../core/ids"
import { now } from "../../core/time"
import { bumpAll } from "../../store/counters"
import { countUpTo } from "../../store/rows"
import type { Tx } from "../../store/store"
import type { EndUserRow } from "../end-users"
import { requireAllowedDomain } from "../methods"
import { memberCounts, type OrganizationRow } from "../organization-rows"
import { memberships } from "./tables"

export type MembershipRow = typeof memberships.$inferSelect

/**
 * Makes a locked user a member of an organization of their environment, whose row the caller has locked, too.
 * Undefined where they are one already, which changes nothing. Throws 403 `forbidden` where the organization does not
 * allow the domain of their address, and 409 `conflict` beyond 1,000 organizations of a user.
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
  await requireRoom(tx, user_id)
  requireAllowedDomain(organization.allowed_email_domains, user.email)
  await bumpAll(tx, memberCounts(membership, 1))
  return membership
}

/** As `joinOrganization`, for a new user. In Default, of which they are a member already, they get the role. */
export async function joinNewly(
  tx: Tx,
  user: EndUserRow,
  organization: OrganizationRow,
  role: string,
): Promise<void> {
  if (await joinOrganization(tx, user, organization, role)) return
  const { organization_id, user_id, project_id } = memberships
  const own = and(
    eq(project_id, user.project_id),
    eq(organization_id, organization.id),
    eq(user_id, user.id),
  )
  await tx.update(memberships).set({ role, updated_at: now() }).where(own)
}

/** Of a user: a page of their own organizations, and every token, look at all of them. */
const MOST_MEMBERSHIPS = 1000

/** The new one is counted. */
async function requireRoom(tx: Tx, user_id: string): Promise<void> {
  const theirs = { rows: memberships, id: memberships.id, where: eq(memberships.user_id, user_id) }
  if ((await countUpTo(tx, theirs, MOST_MEMBERSHIPS + 1)) <= MOST_MEMBERSHIPS) return
  tooMany(`A user is a member of at most ${MOST_MEMBERSHIPS} organizations.`, MOST_MEMBERSHIPS)
}
