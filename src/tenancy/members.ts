import { and, asc, desc, eq, isNull, type SQL } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import type { AccountRole } from "../identity/tables"
import { accountMembers, accounts as accountRows, consoleUsers } from "../identity/tables"
import * as users from "../identity/users"
import { bump, total } from "../store/counters"
import { byMoment } from "../store/moment-cursor"
import type { ListWindow } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import * as accounts from "./accounts"
import { leaveProjects } from "./project-members"

const COUNTER = "members"

/** Undefined for a person outside the account. */
export async function role(
  db: Reader,
  account_id: string,
  user_id: string,
): Promise<AccountRole | undefined> {
  const [row] = await db.select().from(accountMembers).where(seatOf(account_id, user_id))
  return row?.role
}

const seatOf = (account_id: string, user_id: string): SQL | undefined =>
  and(eq(accountMembers.account_id, account_id), eq(accountMembers.user_id, user_id))

/** Newest first. */
export async function list(
  db: Reader,
  account_id: string,
  window: ListWindow,
): Promise<AccountMember[]> {
  const { where, order } = byMoment(accountMembers.joined_at, accountMembers.user_id, window)
  const rows = await members(db)
    .where(and(eq(accountMembers.account_id, account_id), where))
    .orderBy(...order)
    .limit(window.limit)
    .offset(window.offset)
  return rows.map(memberRecord)
}

export const count = (db: Reader, account_id: string) => total(db, account_id, COUNTER)

const members = (db: Reader) =>
  db
    .select({ seat: accountMembers, user: consoleUsers })
    .from(accountMembers)
    .innerJoin(consoleUsers, eq(consoleUsers.id, accountMembers.user_id))

type AccountMember = ReturnType<typeof memberRecord>

/** The Member record of the contract. */
const memberRecord = ({ seat, user }: Awaited<ReturnType<typeof members>>[number]) => ({
  user_id: seat.user_id,
  email: user.email,
  name: user.name,
  role: seat.role,
  mfa_enabled: user.mfa_secret !== null,
  joined_at: seat.joined_at,
  last_active_at: seat.last_active_at,
})

/** Throws 404 `not_found` for a person outside the account. */
export async function find(
  db: Reader,
  account_id: string,
  user_id: string,
): Promise<AccountMember> {
  const rows = isUuid(user_id) ? await members(db).where(seatOf(account_id, user_id)) : []
  return rows[0] ? memberRecord(rows[0]) : fail("not_found", "There is no such member.")
}

/** A member's own role decides which members it may change, and which roles it may give. */
export interface ActingMember extends audit.By {
  account_role: AccountRole | null
}

/** Owners and admins are made and unmade by owners. Throws 403 `forbidden`. */
export function requireOwnerFor(chief: ActingMember, ...roles: AccountRole[]) {
  const high = roles.some((role) => role === "owner" || role === "admin")
  if (!high || chief.account_role === "owner") return
  fail("forbidden", "Only an owner can make, change or remove owners and admins.", {
    required_role: "owner",
  })
}

interface RoleChange {
  account_id: string
  user_id: string
  role: AccountRole
}

/** Throws 409 `conflict` where the account would be left without an owner. */
export async function setRole(
  tx: Tx,
  { account_id, user_id, role }: RoleChange,
  chief: ActingMember,
) {
  const account = await accounts.findForUpdate(tx, account_id)
  const before = await find(tx, account_id, user_id)
  requireOwnerFor(chief, before.role, role)
  if (before.role === "owner" && role !== "owner") await requireAnotherOwner(tx, account, user_id)
  if (before.role !== "owner" && role === "owner")
    await accounts.requireRoomForFree(tx, user_id, account)
  await tx.update(accountMembers).set({ role }).where(seatOf(account_id, user_id))
  if (role === "billing_admin") await leaveProjects(tx, account_id, user_id) // which has no part in them
  await settleOwner(tx, account)
  const after = { ...before, role }
  await log(tx, chief, "member.role_changed", { account_id, before, after })
  return after
}

/** Members may leave; people that may change a member may also remove them. */
export async function remove(tx: Tx, account_id: string, user_id: string, chief: ActingMember) {
  const account = await accounts.findForUpdate(tx, account_id)
  const before = await find(tx, account_id, user_id)
  if (chief.actor.id !== user_id) requireOwnerFor(chief, before.role)
  if (before.role === "owner") await requireAnotherOwner(tx, account, user_id)
  await unseat(tx, account, before, chief)
}

async function unseat(tx: Tx, account: accounts.AccountRow, before: AccountMember, by: audit.By) {
  await leaveProjects(tx, account.id, before.user_id)
  await tx.delete(accountMembers).where(seatOf(account.id, before.user_id))
  await bump(tx, account.id, COUNTER, -1)
  await settleOwner(tx, account)
  await log(tx, by, "member.removed", { account_id: account.id, before })
}

/**
 * Forgets a person. They leave all accounts. Throws 409 `conflict` for the last owner of an account (they have to transfer or delete it first), and for the last operator.
 */
export async function removeUser(tx: Tx, id: string, by: audit.By): Promise<void> {
  const user = await users.findForUpdate(tx, id)
  const left: Left[] = []
  const seats = tx.select().from(accountMembers).where(eq(accountMembers.user_id, id))
  for (const seat of await seats.orderBy(accountMembers.account_id)) {
    const account = await accounts.findForUpdate(tx, seat.account_id)
    if (seat.role === "owner" && !account.deleting_at) await requireHeir(tx, account, id)
    left.push({ account, member: await find(tx, account.id, id) })
  }
  if (user.operator) await users.requireOtherOperator(tx)
  await users.record(tx, user, by, "user.deleted", { before: users.userRecord(user) })
  for (const { account, member } of left) await unseat(tx, account, member, by)
  await users.remove(tx, id)
}

interface Left {
  account: accounts.AccountRow
  member: AccountMember
}

async function requireHeir(tx: Tx, { id, name }: accounts.AccountRow, user_id: string) {
  if (await hasAnotherOwner(tx, id, user_id)) return
  const text = `You are the last owner of ${name}. Transfer or delete the account first.`
  fail("conflict", text, { reason: "last_owner", id })
}

async function requireAnotherOwner(tx: Tx, { id }: accounts.AccountRow, user_id: string) {
  if (await hasAnotherOwner(tx, id, user_id)) return
  fail("conflict", "An account needs an owner. Make another member an owner first.", {
    reason: "last_owner",
    id: user_id,
  })
}

const hasAnotherOwner = async (tx: Tx, account_id: string, user_id: string) =>
  (await ownersOf(tx, account_id)).some((owner) => owner.user_id !== user_id)

/** Longest first. */
const ownersOf = (tx: Tx, account_id: string) =>
  tx
    .select({ user_id: accountMembers.user_id })
    .from(accountMembers)
    .where(and(eq(accountMembers.account_id, account_id), eq(accountMembers.role, "owner")))
    .orderBy(asc(accountMembers.joined_at), asc(accountMembers.user_id))

/** The account counts as that of its longest-standing owner when the one before is none any more. */
async function settleOwner(tx: Tx, { id, owner_user_id }: accounts.AccountRow) {
  const owners = await ownersOf(tx, id)
  if (owners.some(({ user_id }) => user_id === owner_user_id)) return
  const [first] = owners
  await accounts.set(tx, id, { owner_user_id: first?.user_id ?? null })
}

/** The caller hands the account over and stays as an admin. */
export async function transfer(
  tx: Tx,
  account_id: string,
  { from, to }: { from: string; to: string },
  by: audit.By,
) {
  const before = await accounts.findForUpdate(tx, account_id)
  const heir = isUuid(to) ? await role(tx, account_id, to) : undefined
  if (!heir) fail("user_not_found", "There is no such member of the account.")
  if (to === from) {
    fail("conflict", "You own this account already.", { reason: "already_owner", id: to })
  }
  if (heir !== "owner") await accounts.requireRoomForFree(tx, to, before)
  await tx.update(accountMembers).set({ role: "owner" }).where(seatOf(account_id, to))
  await tx.update(accountMembers).set({ role: "admin" }).where(seatOf(account_id, from))
  return accounts.change(tx, before, { owner_user_id: to }, "account.transferred", by)
}

/** A person's accounts that are not being deleted, newest first. */
export function accountsOf(db: Reader, user_id: string) {
  return db
    .select({ account: accountRows, role: accountMembers.role })
    .from(accountMembers)
    .innerJoin(accountRows, eq(accountRows.id, accountMembers.account_id))
    .where(and(eq(accountMembers.user_id, user_id), isNull(accountRows.deleting_at)))
    .orderBy(desc(accountRows.id))
}

interface MemberChange {
  account_id: string
  before?: AccountMember
  after?: AccountMember
}

function log(tx: Tx, by: audit.By, action: string, { account_id, before, after }: MemberChange) {
  const target = { type: "member", id: (before ?? after)?.user_id ?? null }
  return audit.record(tx, by, { account_id, action, target, before, after })
}
