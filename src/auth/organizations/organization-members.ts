import { and, eq, inArray, ne, sql } from "drizzle-orm"
import { fail } from "../../core/errors"
import { now } from "../../core/time"
import type { Caller } from "../../identity/caller"
import { fieldsOf } from "../../lib/record-fields"
import { total } from "../../store/counters"
import { type RowList, rowList } from "../../store/rows"
import type { Reader, Tx } from "../../store/store"
import { noUser } from "../end-users"
import { ownedForUpdate } from "../managed-users"
import { membersIn, type OrganizationRow, removeSomeMembers } from "../organization-rows"
import { users } from "../tables"
import { joinOrganization, type MembershipRow } from "./join"
import {
  findOrganization,
  isDefault,
  memberForUpdate,
  organizationForUpdate,
  type ReachedOrganization,
  recordOrganization,
  refuseDefault,
  refuseRole,
  requireWritable,
} from "./organization-access"
import { type MemberChanges, type MemberInput, Membership } from "./organization-schemas"
import { memberships } from "./tables"

type Named<Row> = Row & { email: string | null; name: string | null }

/** The members of an organization, the newest membership first, with the addresses and names of the users. */
export function list(
  db: Reader,
  { id, project_id }: OrganizationRow,
): RowList<Named<MembershipRow>> {
  const rows = rowList(db, memberships, {
    of: eq(memberships.organization_id, id),
    missing: noMember,
  })
  return {
    ...rows,
    total: () => total(db, project_id, membersIn(id)),
    async list(window) {
      const found = await rows.list(window)
      return { ...found, rows: await named(db, found.rows) }
    },
  }
}

const noMember = () => fail("not_found", "There is no such member.")

async function named(db: Reader, rows: MembershipRow[]): Promise<Named<MembershipRow>[]> {
  if (rows.length === 0) return []
  const ids = rows.map(({ user_id }) => user_id)
  const { id, email, name } = users
  const found = await db.select({ id, email, name }).from(users).where(inArray(id, ids))
  const byId = new Map(found.map((user) => [user.id, user]))
  return rows.map((row) => {
    const { email = null, name = null } = byId.get(row.user_id) ?? {}
    return { ...row, email, name }
  })
}

/** The Membership of the contract. */
export const toMembership = (row: MembershipRow) =>
  fieldsOf(Membership, { ...row, end_user_id: row.user_id })

/**
 * Makes a user a member. Throws 404 `user_not_found` for one of another environment, 403 `plan_upgrade_required`, 409
 * `conflict` for a member, and 403 `forbidden` for an address in a domain that is not allowed.
 */
export async function add(
  tx: Tx,
  caller: Caller,
  id: string,
  { user_id, role = "member", permissions = [] }: MemberInput,
) {
  await findOrganization(tx, caller, id, "admin")
  const { user } = await ownedForUpdate(tx, caller, user_id)
  const found = await organizationForUpdate(tx, caller, id, "admin")
  const { organization } = found
  if (user.environment_id !== organization.environment_id) return noUser()
  await requireWritable(tx, caller, found)
  const made = await joinOrganization(tx, user, organization, role, permissions)
  if (!made) return fail("conflict", "The user is a member already.", { reason: "already_member" })
  const record = toMembership(made)
  await recordOrganization(tx, caller, organization, "member_added", { after: record })
  return record
}

/**
 * Changes the role or the permissions of a member. Throws 403 `forbidden` for an admin that changes or makes an owner,
 * and 409 `conflict` for the last owner.
 */
export async function change(
  tx: Tx,
  caller: Caller,
  id: string,
  user_id: string,
  changes: MemberChanges,
) {
  const found = await organizationForUpdate(tx, caller, id, "admin")
  const { organization } = found
  const before = await memberForUpdate(tx, organization, user_id)
  const after = { ...before, ...changes, updated_at: now() }
  requireRightOver(found, before, after)
  await requireWritable(tx, caller, found)
  if (after.role !== "owner") await requireOtherOwner(tx, before)
  const { role, permissions, updated_at } = after
  await tx.update(memberships).set({ role, permissions, updated_at }).where(itself(before))
  const record = toMembership(after)
  const difference = { before: toMembership(before), after: record }
  await recordOrganization(tx, caller, organization, "member_updated", difference)
  return record
}

/** Of users, only owners make and unmake owners. */
function requireRightOver({ own }: ReachedOrganization, ...rows: MembershipRow[]): void {
  if (!own || own.role === "owner") return
  if (rows.some(({ role }) => role === "owner")) refuseRole("owner")
}

/** Throws 409 `conflict` where the organization would lose its last owner. */
async function requireOtherOwner(tx: Tx, { organization_id, user_id, role }: MembershipRow) {
  if (role !== "owner") return
  const others = and(
    eq(memberships.organization_id, organization_id),
    sql`${memberships.role} = 'owner'`, // in these words the index of owners knows it
    ne(memberships.user_id, user_id),
  )
  const [other] = await tx.select({ id: memberships.id }).from(memberships).where(others).limit(1)
  if (other) return
  const text = "This is the only owner of the organization. Make another member an owner first."
  fail("conflict", text, { reason: "last_owner" })
}

const itself = ({ id, project_id }: MembershipRow) =>
  and(eq(memberships.project_id, project_id), eq(memberships.id, id))

/**
 * Takes a member out. Their sessions in it move to Default at the next refresh. Throws 403 `forbidden` for an admin that
 * removes an owner, 409 `conflict` for the last owner, and in the Default organization.
 */
export async function remove(tx: Tx, caller: Caller, id: string, user_id: string) {
  const found = await organizationForUpdate(tx, caller, id, "admin")
  const { organization } = found
  const member = await memberForUpdate(tx, organization, user_id)
  requireRightOver(found, member)
  await takeOut(tx, found, member)
  const before = toMembership(member)
  await recordOrganization(tx, caller, organization, "member_removed", { before })
}

/** Takes the caller out. Throws 409 `conflict` for the last owner, and in the Default organization. */
export async function leave(tx: Tx, caller: Caller, id: string): Promise<void> {
  const found = await organizationForUpdate(tx, caller, id, "member")
  if (found.own) await takeOut(tx, found, found.own)
}

async function takeOut(tx: Tx, found: ReachedOrganization, member: MembershipRow): Promise<void> {
  if (isDefault(found)) refuseDefault("Every user is a member of it, and stays one.")
  await requireOtherOwner(tx, member)
  await removeSomeMembers(tx, itself(member))
}
