import { eq, inArray, type SQL } from "drizzle-orm"
import { fail } from "../core/errors"
import { searchable } from "../lib/text"
import { bumpAll } from "../store/counters"
import { rowById } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import type { AuthEnvironment } from "./environments"
import { memberships, organizations } from "./organizations/tables"

export type OrganizationRow = typeof organizations.$inferSelect

/** Throws 404 `not_found`. */
export const noOrganization = (): never => fail("not_found", "There is no such organization.")

/** One of the environment. Throws 404 `not_found`. */
export const organizationIn = async (
  db: Reader,
  environment: AuthEnvironment,
  id: string,
): Promise<OrganizationRow> =>
  (await rowById(db, organizations, id, ofEnvironment(environment))) ?? noOrganization()

/** An environment is of one project; by both ids a database might walk the index of the project. */
export const ofEnvironment = ({ id }: AuthEnvironment): SQL => eq(organizations.environment_id, id)

/** The counter of an environment's organizations. */
export const organizationsIn = (environment_id: string): string =>
  `auth_organizations.environment_id.${environment_id}`

/** The counter of the members of an organization. */
export const membersIn = (organization_id: string): string =>
  `memberships.organization_id.${organization_id}`

/** The texts of an organization in the form for searching. */
export const searchKeyOf = ({ name, slug }: Pick<OrganizationRow, "name" | "slug">): string =>
  searchable(`${name}\n${slug}`)

/** A new organization, which nobody is a member of. */
export async function insertOrganization(
  tx: Tx,
  wanted: Omit<OrganizationRow, "search_key">,
): Promise<OrganizationRow> {
  const row = { ...wanted, search_key: searchKeyOf(wanted) }
  await tx.insert(organizations).values(row)
  await bumpAll(tx, countsOf(row, 1))
  return row
}

/** The totals of an organization: of the project, and of its environment. */
export const countsOf = (
  { project_id: owner, environment_id }: Pick<OrganizationRow, "project_id" | "environment_id">,
  by: 1 | -1,
) => ["auth_organizations", organizationsIn(environment_id)].map((name) => ({ owner, name, by }))

/** The totals of a membership: of the project, and of its organization. */
export const memberCounts = (
  {
    project_id: owner,
    organization_id,
  }: Pick<OrganizationRow, "project_id"> & { organization_id: string },
  by: 1 | -1,
) => ["memberships", membersIn(organization_id)].map((name) => ({ owner, name, by }))

/** Rows of one transaction: others work in between. */
const AT_ONCE = 200

/** Removes some memberships, and counts those that were there. Returns how many were found. */
export async function removeSomeMembers(tx: Tx, which: SQL | undefined): Promise<number> {
  const { id } = memberships
  const rows = await tx.select({ id }).from(memberships).where(which).limit(AT_ONCE)
  if (rows.length === 0) return 0
  const ids = rows.map((row) => row.id)
  const gone = await tx.delete(memberships).where(inArray(id, ids)).returning()
  await bumpAll(
    tx,
    gone.flatMap((row) => memberCounts(row, -1)),
  )
  return rows.length
}
