import { and, eq, inArray, type SQL, sql } from "drizzle-orm"
import { partOf } from "../lib/text"
import { isAskedId } from "../store/columns"
import { total } from "../store/counters"
import { type BoundedList, boundedList, type IdSource, type RowList } from "../store/rows"
import type { Reader } from "../store/store"
import { type EndUserRow, emailKeyOf, find, usersOf } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { memberships } from "./organizations/tables"
import { type UserStatus, users } from "./tables"

export interface UserFilter {
  email?: string | undefined
  phone_number?: string | undefined
  status?: UserStatus | undefined
  organization_id?: string | undefined
  /** A part of the email, the number or the name, in any case. */
  q?: string | undefined
}

/**
 * The users of an environment, newest first: along the index of the filter that leaves the fewest, with the others asked
 * row by row. The environment is of the caller's project, so its id alone names its rows.
 */
export function list(
  db: Reader,
  environment: AuthEnvironment,
  filter: UserFilter,
): RowList<EndUserRow> {
  const { id, project_id } = environment
  const { email, phone_number, status, organization_id, q } = filter
  const columns = [
    email === undefined ? undefined : eq(users.email_key, emailKeyOf(email)),
    phone_number === undefined ? undefined : eq(users.phone_number, phone_number),
    status && eq(users.status, status),
  ].filter((one) => one !== undefined)
  const is_pinned = (email ?? phone_number) !== undefined
  const members =
    organization_id === undefined ? undefined : membersOf(environment, organization_id)
  const walks_members = members !== undefined && !is_pinned
  const [indexed, ...others] = walks_members ? [undefined, ...columns] : columns
  const along = walks_members
    ? members
    : { rows: users, id: users.id, where: and(eq(users.environment_id, id), indexed) }
  const asked = [...others, walks_members ? undefined : amongMembers(db, members), searching(q)]
  const owned: BoundedList<EndUserRow> = {
    owner: project_id,
    table: users,
    along,
    filter: and(...asked),
  }
  const rows = boundedList(db, owned)
  const is_counted = [email, phone_number, organization_id, q].every((one) => one === undefined)
  return {
    ...rows,
    ...(is_counted && { total: () => total(db, project_id, usersOf(id, status)) }),
    find: (user_id) => find(db, project_id, user_id),
  }
}

const membersOf = ({ id }: AuthEnvironment, organization_id: string): IdSource => ({
  rows: memberships,
  id: memberships.user_id,
  where: and(
    isAskedId(memberships.organization_id, organization_id),
    eq(memberships.environment_id, id),
  ),
})

function amongMembers(db: Reader, members: IdSource | undefined): SQL | undefined {
  if (!members) return undefined
  const own = and(members.where, eq(memberships.user_id, users.id))
  return inArray(users.id, db.select({ id: memberships.user_id }).from(memberships).where(own))
}

const searching = (q: string | undefined) =>
  q === undefined ? undefined : sql`${users.search_key} LIKE ${partOf(q)} ESCAPE '\\'`
