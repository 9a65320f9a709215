import { and, count, eq, inArray, or, type SQL, sql } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import { now } from "../core/time"
import type { SystemLetter, SystemMail } from "../identity/system-mail"
import type { AccountRole } from "../identity/tables"
import {
  accountMembers,
  consoleUsers,
  type ProjectRole,
  projectMembers,
  projects,
} from "../identity/tables"
import { comparable } from "../lib/address"
import { isAskedId } from "../store/dialect"
import { readHeavy } from "../store/heavy-reads"
import { byMoment } from "../store/moment-cursor"
import type { ListWindow } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import * as accounts from "./accounts"
import type { ProjectHome } from "./projects"

const INHERITING: AccountRole[] = ["owner", "admin"]

const isInherited = inArray(accountMembers.role, INHERITING)

const added = sql<string>`CASE WHEN ${isInherited} THEN ${accountMembers.joined_at} ELSE ${projectMembers.added_at} END`

/** Newest first: the members of the project, and those of the account. */
export async function list(
  db: Reader,
  home: ProjectHome,
  window: ListWindow,
): Promise<ProjectMember[]> {
  const { where, order } = byMoment(added, accountMembers.user_id, window)
  const rows = await people(db, home)
    .where(and(inProject(home), where))
    .orderBy(...order)
    .limit(window.limit)
    .offset(window.offset)
  return rows.map(memberRecord)
}

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
  for (const { role, email } of team.map(memberRecord)) {
    if (role === "admin") await mail.send(tx, { ...letter, to: email })
  }
}

export async function total(db: Reader, home: ProjectHome): Promise<number> {
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

export type ProjectMember = ReturnType<typeof memberRecord>

/** Owners and admins of the account are admins in every project; that cannot be changed here. */
function memberRecord({ seat, user, own }: Person) {
  const inherited = INHERITING.includes(seat.role)
  return {
    user_id: user.id,
    email: user.email,
    name: user.name,
    role: inherited ? ("admin" as const) : (own?.role ?? "viewer"),
    inherited,
    added_at: (inherited ? undefined : own?.added_at) ?? seat.joined_at,
  }
}

export async function find(db: Reader, home: ProjectHome, user_id: string): Promise<ProjectMember> {
  const one = and(inProject(home), eq(accountMembers.user_id, user_id))
  const rows = isUuid(user_id) ? await people(db, home).where(one) : []
  return rows[0]
    ? memberRecord(rows[0])
    : fail("not_found", "There is no such member of this project.")
}

export interface NewProjectMember {
  user_id?: string
  email?: string
  role: ProjectRole
}

/** Throws 404 `user_not_found` for a person outside the account. */
export async function add(tx: Tx, home: ProjectHome, wanted: NewProjectMember, by: audit.By) {
  await accounts.findForUpdate(tx, home.account_id)
  const person = await colleague(tx, home, wanted)
  const { user_id, role } = person.seat
  if (INHERITING.includes(role)) throw conflict("inherited", user_id)
  if (role === "billing_admin") throw conflict("billing_admin", user_id)
  if (person.own) throw conflict("already_member", user_id)
  const { project_id } = home
  await tx
    .insert(projectMembers)
    .values({ project_id, user_id, role: wanted.role, added_at: now() })
  const after = await find(tx, home, user_id)
  await log(tx, by, home, "project_member.added", { after })
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

const conflict = (reason: keyof typeof REASONS, id: string) =>
  fail("conflict", REASONS[reason], { reason, id })

export async function setRole(
  tx: Tx,
  home: ProjectHome,
  { user_id, role }: { user_id: string; role: ProjectRole },
  by: audit.By,
) {
  const before = await changeable(tx, home, user_id)
  await tx.update(projectMembers).set({ role }).where(seatOf(home, user_id))
  const after = { ...before, role }
  await log(tx, by, home, "project_member.role_changed", { before, after })
  return after
}

export async function remove(tx: Tx, home: ProjectHome, user_id: string, by: audit.By) {
  const before = await changeable(tx, home, user_id)
  await tx.delete(projectMembers).where(seatOf(home, user_id))
  await log(tx, by, home, "project_member.removed", { before })
}

async function changeable(tx: Tx, home: ProjectHome, user_id: string): Promise<ProjectMember> {
  await accounts.findForUpdate(tx, home.account_id)
  const member = await find(tx, home, user_id)
  return member.inherited ? conflict("inherited", user_id) : member
}

const seatOf = ({ project_id }: ProjectHome, user_id: string): SQL | undefined =>
  and(eq(projectMembers.project_id, project_id), eq(projectMembers.user_id, user_id))

/** Gives roles in projects of the account, as an invitation promised; projects gone are skipped. */
export async function grantAll(
  tx: Tx,
  account_id: string,
  user_id: string,
  grants: { project_id: string; role: ProjectRole }[],
) {
  const known = (await ids(tx, account_id)).map(({ id }) => id)
  const added_at = now()
  const rows = grants
    .filter(({ project_id }) => known.includes(project_id))
    .map(({ project_id, role }) => ({ project_id, user_id, role, added_at }))
  if (rows.length > 0) await tx.insert(projectMembers).values(rows).onConflictDoNothing()
}

/** Ends every role in the account's projects. */
export async function leaveProjects(tx: Tx, account_id: string, user_id: string) {
  const ours = inArray(projectMembers.project_id, ids(tx, account_id))
  await tx.delete(projectMembers).where(and(ours, eq(projectMembers.user_id, user_id)))
}

const ids = (db: Reader, account_id: string) =>
  db
    .select({ id: projects.id })
    .from(projects)
    .where(and(eq(projects.account_id, account_id), eq(projects.hidden, false)))

/** The projects in which a person has a role that does not come from the account. */
export async function projectsOf(db: Reader, account_id: string, user_id: string) {
  const rows = await db
    .select({ id: projectMembers.project_id })
    .from(projectMembers)
    .innerJoin(projects, eq(projects.id, projectMembers.project_id))
    .where(and(eq(projectMembers.user_id, user_id), eq(projects.account_id, account_id)))
  return rows.map(({ id }) => id)
}

interface ProjectMemberChange {
  before?: ProjectMember
  after?: ProjectMember
}

function log(tx: Tx, by: audit.By, home: ProjectHome, action: string, change: ProjectMemberChange) {
  const id = (change.before ?? change.after)?.user_id ?? null
  return audit.record(tx, by, {
    ...home,
    action,
    target: { type: "project_member", id },
    ...change,
  })
}
