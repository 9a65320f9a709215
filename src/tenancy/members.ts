import type { Static } from "@sinclair/typebox"
import { and, asc, count, eq, inArray, or, type SQL, sql } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { conflict, fail } from "../core/errors"
import { isUuid } from "../core/ids"
import { now } from "../core/time"
import type { ProjectActor } from "../identity/noun"
import type { SystemLetter, SystemMail } from "../identity/system-mail"
import {
  type AccountRole,
  accountMembers,
  consoleUsers,
  type ProjectRole,
  projectMembers,
  projects,
} from "../identity/tables"
import * as users from "../identity/users"
import { comparable } from "../lib/address"
import { fieldsOf } from "../lib/record-fields"
import { isAskedId } from "../store/columns"
import { bump, total } from "../store/counters"
import { readHeavy } from "../store/heavy-reads"
import { byMoment, cursorText } from "../store/moment-cursor"
import type { ListWindow } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import * as accounts from "./accounts"
import { leaveProjects, type ProjectHome } from "./projects"
import * as schemas from "./schemas"

export const COUNTER = "members"

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

/** The rows of people as pages read them, newest first: a cursor names a moment and a person. */
const byPerson =
  <Member extends { user_id: string }>(at: (member: Member) => string) =>
  (member: Member) => ({ id: cursorText({ at: at(member), id: member.user_id }), member })

const byJoining = byPerson<AccountMember>(({ joined_at }) => joined_at)

/** The people of an account. */
export const ofAccount = (db: Reader, account_id: string) => ({
  keyOf: async (user_id: string) => byJoining(await find(db, account_id, user_id)).id,
  async list(window: ListWindow) {
    const { where, order } = byMoment(accountMembers.joined_at, accountMembers.user_id, window)
    const rows = await members(db)
      .where(and(eq(accountMembers.account_id, account_id), where))
      .orderBy(...order)
      .limit(window.limit)
      .offset(window.offset)
    return { rows: rows.map(toResponse).map(byJoining) }
  },
  total: () => total(db, account_id, COUNTER),
})

const members = (db: Reader) =>
  db
    .select({ seat: accountMembers, user: consoleUsers })
    .from(accountMembers)
    .innerJoin(consoleUsers, eq(consoleUsers.id, accountMembers.user_id))

type AccountMember = ReturnType<typeof toResponse>

/** The Member record of the contract. */
const toResponse = ({ seat, user }: Awaited<ReturnType<typeof members>>[number]) =>
  fieldsOf(schemas.Member, { ...user, ...seat, mfa_enabled: user.mfa_secret !== null })

/** Throws 404 `not_found` for a person outside the account. */
export async function find(
  db: Reader,
  account_id: string,
  user_id: string,
): Promise<AccountMember> {
  const rows = isUuid(user_id) ? await members(db).where(seatOf(account_id, user_id)) : []
  return rows[0] ? toResponse(rows[0]) : fail("not_found", "There is no such member.")
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

/** Throws 409 `conflict` where the account would be left without an owner. */
export async function setRole(
  tx: Tx,
  { account_id, user_id, role }: { account_id: string; user_id: string; role: AccountRole },
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
  await log(tx, chief, "member.role_changed", { account_id }, { before, after })
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
  await log(tx, by, "member.removed", { account_id: account.id }, { before })
}

/**
 * Forgets a person. They leave all accounts. Throws 409 `conflict` for the last owner of an account (they have to transfer or delete it first), and for the last operator.
 */
export async function removeUser(tx: Tx, id: string, by: audit.By): Promise<void> {
  const user = await users.findForUpdate(tx, id)
  const left: { account: accounts.AccountRow; member: AccountMember }[] = []
  const seats = tx.select().from(accountMembers).where(eq(accountMembers.user_id, id))
  for (const seat of await seats.orderBy(accountMembers.account_id)) {
    const account = await accounts.findForUpdate(tx, seat.account_id)
    if (seat.role === "owner" && !account.deleting_at) await requireHeir(tx, account, id)
    left.push({ account, member: await find(tx, account.id, id) })
  }
  if (user.operator) await users.requireOtherOperator(tx)
  await users.record(tx, user, by, "user.deleted", { before: users.toResponse(user) })
  for (const { account, member } of left) await unseat(tx, account, member, by)
  await users.remove(tx, id)
}

async function requireHeir(tx: Tx, { id, name }: accounts.AccountRow, user_id: string) {
  if (await hasAnotherOwner(tx, id, user_id)) return
  const text = `You are the last owner of ${name}. Transfer or delete the account first.`
  conflict("last_owner", id, text)
}

async function requireAnotherOwner(tx: Tx, { id }: accounts.AccountRow, user_id: string) {
  if (await hasAnotherOwner(tx, id, user_id)) return
  conflict("last_owner", user_id, "An account needs an owner. Make another member an owner first.")
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
    conflict("already_owner", to, "You own this account already.")
  }
  if (heir !== "owner") await accounts.requireRoomForFree(tx, to, before)
  await tx.update(accountMembers).set({ role: "owner" }).where(seatOf(account_id, to))
  await tx.update(accountMembers).set({ role: "admin" }).where(seatOf(account_id, from))
  return accounts.change(tx, before, { owner_user_id: to }, "account.transferred", by)
}

const INHERITING: AccountRole[] = ["owner", "admin"]

const isInherited = inArray(accountMembers.role, INHERITING)

const added = sql<string>`CASE WHEN ${isInherited} THEN ${accountMembers.joined_at} ELSE ${projectMembers.added_at} END`

/** The people of a project: its own, and those of the account whose role reaches into it. */
export const ofProject = (db: Reader, home: ProjectHome) => ({
  keyOf: async (user_id: string) => byAddition(await findInProject(db, home, user_id)).id,
  async list(window: ListWindow) {
    const { where, order } = byMoment(added, accountMembers.user_id, window)
    const rows = await people(db, home)
      .where(and(inProject(home), where))
      .orderBy(...order)
      .limit(window.limit)
      .offset(window.offset)
    return { rows: rows.map(toProjectResponse).map(byAddition) }
  },
  total: () => countInProject(db, home),
})

const byAddition = byPerson<ProjectMember>(({ added_at }) => added_at)

/**
 * Mails every active admin of the project, by an own role or by that in the account. `write` makes the
 * mail from the project's name. Nobody is told of a project that is being deleted.
 */
export async function mailAdmins(
  tx: Tx,
  mail: SystemMail,
  home: ProjectHome,
  write: (project: string) => Omit<SystemLetter, "to">,
): Promise<void> {
  const [project] = await tx.select().from(projects).where(eq(projects.id, home.project_id))
  if (!project || project.deleting_at) return
  const active = eq(consoleUsers.status, "active")
  const team = await people(tx, home).where(and(inProject(home), active))
  const letter = write(project.name)
  for (const { role, email } of team.map(toProjectResponse)) {
    if (role === "admin") await mail.send(tx, { ...letter, to: email })
  }
}

async function countInProject(db: Reader, home: ProjectHome): Promise<number> {
  const [row] = await readHeavy(db, home.account_id, (read) =>
    read((thread) =>
      thread
        .select({ all: count() })
        .from(accountMembers)
        .leftJoin(projectMembers, own(home))
        .where(inProject(home)),
    ),
  )
  return row?.all ?? 0
}

const own = ({ project_id }: ProjectHome) =>
  and(eq(projectMembers.user_id, accountMembers.user_id), eq(projectMembers.project_id, project_id))

const inProject = ({ account_id }: ProjectHome): SQL | undefined =>
  and(
    eq(accountMembers.account_id, account_id),
    or(isInherited, sql`${projectMembers.user_id} IS NOT NULL`),
  )

const people = (db: Reader, home: ProjectHome) =>
  db
    .select({ seat: accountMembers, user: consoleUsers, own: projectMembers })
    .from(accountMembers)
    .innerJoin(consoleUsers, eq(consoleUsers.id, accountMembers.user_id))
    .leftJoin(projectMembers, own(home))

type Person = Awaited<ReturnType<typeof people>>[number]

type ProjectMember = ReturnType<typeof toProjectResponse>

/** Owners and admins of the account are admins in every project; that cannot be changed here. */
function toProjectResponse({ seat, user, own }: Person) {
  const inherited = INHERITING.includes(seat.role)
  const role = inherited ? "admin" : (own?.role ?? "viewer")
  const added_at = (inherited ? undefined : own?.added_at) ?? seat.joined_at
  return fieldsOf(schemas.ProjectMember, { ...user, ...seat, role, inherited, added_at })
}

async function findInProject(db: Reader, home: ProjectHome, user_id: string) {
  const one = and(inProject(home), eq(accountMembers.user_id, user_id))
  const rows = isUuid(user_id) ? await people(db, home).where(one) : []
  return rows[0]
    ? toProjectResponse(rows[0])
    : fail("not_found", "There is no such member of this project.")
}

export type NewProjectMember = Static<typeof schemas.NewProjectMember>

/** Throws 404 `user_not_found` for a person outside the account. */
export async function add(tx: Tx, by: ProjectActor, wanted: NewProjectMember) {
  const home = homeOf(by)
  await accounts.findForUpdate(tx, home.account_id)
  const person = await colleague(tx, home, wanted)
  const { user_id, role } = person.seat
  if (INHERITING.includes(role)) refuseMember("inherited", user_id)
  if (role === "billing_admin") refuseMember("billing_admin", user_id)
  if (person.own) refuseMember("already_member", user_id)
  const { project_id } = home
  await tx
    .insert(projectMembers)
    .values({ project_id, user_id, role: wanted.role, added_at: now() })
  const after = await findInProject(tx, home, user_id)
  await log(tx, by, "project_member.added", home, { after })
  return after
}

async function colleague(
  tx: Tx,
  home: ProjectHome,
  { user_id, email }: NewProjectMember,
): Promise<Person> {
  const named = user_id
    ? isAskedId(accountMembers.user_id, user_id)
    : eq(consoleUsers.email_key, comparable(email ?? ""))
  const ours = and(eq(accountMembers.account_id, home.account_id), named)
  const [row] = await people(tx, home).where(ours)
  return row ?? fail("user_not_found", "There is no such member of the account.")
}

const REASONS = {
  inherited:
    "Owners and admins of the account are admins of every project. Change their role in the account.",
  billing_admin: "A billing admin has no role in projects. Change their role in the account first.",
  already_member: "This person is a member of the project already.",
}

const refuseMember = (reason: keyof typeof REASONS, id: string) =>
  conflict(reason, id, REASONS[reason])

export async function setProjectRole(
  tx: Tx,
  by: ProjectActor,
  { user_id, role }: { user_id: string; role: ProjectRole },
) {
  const home = homeOf(by)
  const before = await changeable(tx, home, user_id)
  await tx.update(projectMembers).set({ role }).where(projectSeatOf(home, user_id))
  const after = { ...before, role }
  await log(tx, by, "project_member.role_changed", home, { before, after })
  return after
}

export async function removeFromProject(tx: Tx, by: ProjectActor, user_id: string) {
  const home = homeOf(by)
  const before = await changeable(tx, home, user_id)
  await tx.delete(projectMembers).where(projectSeatOf(home, user_id))
  await log(tx, by, "project_member.removed", home, { before })
}

const homeOf = ({ account_id, project_id }: ProjectActor): ProjectHome => ({
  account_id,
  project_id,
})

async function changeable(tx: Tx, home: ProjectHome, user_id: string): Promise<ProjectMember> {
  await accounts.findForUpdate(tx, home.account_id)
  const member = await findInProject(tx, home, user_id)
  return member.inherited ? refuseMember("inherited", user_id) : member
}

const projectSeatOf = ({ project_id }: ProjectHome, user_id: string): SQL | undefined =>
  and(eq(projectMembers.project_id, project_id), eq(projectMembers.user_id, user_id))

/** `action` begins with the type of the target. */
function log(
  tx: Tx,
  by: audit.By,
  action: string,
  home: { account_id: string; project_id?: string },
  change: { before?: { user_id: string }; after?: { user_id: string } },
) {
  const [type = ""] = action.split(".")
  const target = { type, id: (change.before ?? change.after)?.user_id ?? null }
  return audit.record(tx, by, { ...home, action, target, ...change })
}
