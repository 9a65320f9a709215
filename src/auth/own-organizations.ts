import type { Static } from "@sinclair/typebox"
import { and, asc, eq, sql } from "drizzle-orm"
import { fieldsOf } from "../lib/record-fields"
import type { Reader } from "../store/store"
import type { EndUserRow } from "./end-users"
import { memberships, organizations } from "./organizations/tables"
import { ActiveOrganization } from "./schemas"

/** As many as an access token names. */
export const MOST_NAMED = 50

/** An organization, with what the user is there. */
export interface OwnOrganization {
  id: string
  name: string
  role: string
  permissions: string[]
  /** Its sessions need a second factor. */
  mfa_required: boolean
}

/**
 * The organizations of a user: the named one first, then by name; one more than a token names. Where the user is no
 * member of the named one, it is not among them.
 */
export const organizationsOf = (
  db: Reader,
  user: Pick<EndUserRow, "id" | "project_id">,
  first: string,
): PromiseLike<OwnOrganization[]> =>
  db
    .select({
      id: organizations.id,
      name: organizations.name,
      role: memberships.role,
      permissions: memberships.permissions,
      mfa_required: organizations.mfa_required,
    })
    .from(memberships)
    .innerJoin(organizations, eq(organizations.id, memberships.organization_id))
    .where(and(eq(memberships.project_id, user.project_id), eq(memberships.user_id, user.id)))
    .orderBy(
      sql`case when ${eq(organizations.id, first)} then 0 else 1 end`,
      asc(organizations.name),
      asc(organizations.id),
    )
    .limit(MOST_NAMED + 1)

/** The first one, in which the session is. */
export function activeOf([active]: OwnOrganization[]): OwnOrganization {
  if (!active) throw new Error("every user is a member of the Default organization")
  return active
}

export const toActive = (organization: OwnOrganization): Static<typeof ActiveOrganization> =>
  fieldsOf(ActiveOrganization, organization)
