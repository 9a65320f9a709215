import { and, asc, eq, inArray, type SQL } from "drizzle-orm"
import type * as audit from "../audit-log/audit-log"
import { conflict, fail } from "../core/errors"
import { newId } from "../core/ids"
import { now, secondsFromNow } from "../core/time"
import { noun } from "../identity/noun"
import {
  accounts as accountTable,
  type ProjectRole,
  projectMembers,
  projects,
} from "../identity/tables"
import { enqueue, type JobKind } from "../jobs/jobs"
import { fieldsOf } from "../lib/record-fields"
import { slugFrom } from "../lib/text"
import { requireRoom } from "../plans/plans"
import { countRows } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import * as accounts from "./accounts"
import { Project } from "./schemas"

/** As `purgeAccount`, for one project. */
export const purgeProject: JobKind<{ id: string }> = {
  name: "project.purge",
  schedule: accounts.purgeSchedule,
}

/** A project and the account around it. */
export interface ProjectHome {
  account_id: string
  project_id: string
}

type ProjectRow = typeof projects.$inferSelect

export interface NewProject {
  account_id: string
  name: string
  slug?: string | undefined
  /** How many the plan allows; null is unlimited. */
  limit: number | null
  plan: string
}

/** Throws 403 `plan_limit_exceeded` or 409 `conflict` when the slug is taken. */
export async function create(tx: Tx, wanted: NewProject, by: audit.By): Promise<ProjectRow> {
  const { account_id, name } = wanted
  await accounts.findForUpdate(tx, account_id) // two at once must not pass the limit together
  await requireRoomForOne(tx, wanted)
  const slug = wanted.slug ?? (await freeSlug(tx, account_id, name))
  const begun = { status: "active" as const, settings: {}, hidden: false, deleting_at: null }
  return project.insert(tx, { ...by, account_id }, { name, slug, ...begun })
}

type ProjectLimit = Pick<NewProject, "account_id" | "limit" | "plan">

async function requireRoomForOne(tx: Tx, { account_id, limit, plan }: ProjectLimit) {
  const used = await countActive(tx, account_id)
  requireRoom({ resource: "projects", used, limit, plan })
}

/** An account has few projects, so counting them is cheaper than keeping a total. */
const countActive = (db: Reader, account_id: string): Promise<number> =>
  countRows(db, projects, and(visible(account_id), eq(projects.status, "active")))

async function freeSlug(tx: Tx, account_id: string, name: string): Promise<string> {
  const wish = slugFrom(name) || "project"
  const same = and(eq(projects.account_id, account_id), eq(projects.slug, wish))
  const [taken] = await tx.select().from(projects).where(same)
  return taken ? `${wish}-${newId().slice(-8)}` : wish
}

const noProject = () => fail("not_found", "There is no such project.")

/**
 * It finds projects that are being deleted, too. It does not ask whether a project is hidden: the hidden one belongs
 * to an account without members, so nobody calls for it.
 */
export const project = noun({
  name: "project",
  table: projects,
  owner: "account_id",
  projectOf: ({ id }) => id,
  missing: noProject,
  unique: {
    column: "slug",
    message: (slug) => `Another project of this account has the slug ${slug}. Choose another slug.`,
  },
})

/** The Project record of the contract. */
export const toResponse = (row: ProjectRow) =>
  fieldsOf(Project, { ...row, sandbox: row.settings.sandbox ?? false })

const visible = (account_id: string): SQL | undefined =>
  and(eq(projects.account_id, account_id), eq(projects.hidden, false))

/** Newest first, of those that the caller may see: `only` has their ids, undefined is all. */
export function list(db: Reader, account_id: string, only: string[] | undefined) {
  if (!only) return project.list(db, account_id)
  const rows = project.list(db, account_id, { indexed: inArray(projects.id, only) })
  return { ...rows, find: async (id: string) => (only.includes(id) ? rows.find(id) : noProject()) }
}

/** Oldest first. */
export const active = (db: Reader, account_id: string): Promise<ProjectRow[]> =>
  db
    .select()
    .from(projects)
    .where(and(visible(account_id), eq(projects.status, "active")))
    .orderBy(asc(projects.id))

export async function patch(
  tx: Tx,
  account_id: string,
  id: string,
  wanted: { name?: string; slug?: string },
  by: audit.By,
): Promise<ProjectRow> {
  await accounts.findForUpdate(tx, account_id)
  const before = await project.find(tx, account_id, id)
  return project.update(tx, { ...by, account_id }, before, wanted)
}

/** Its keys stop at once; it can be restored for a week. The last one of an account stays. */
export async function remove(tx: Tx, account_id: string, id: string, by: audit.By) {
  await accounts.findForUpdate(tx, account_id)
  const before = await project.find(tx, account_id, id)
  if (before.status === "deleting") noProject()
  if ((await countActive(tx, account_id)) <= 1) {
    conflict(
      "last_project",
      id,
      "This is the last project of the account. Make another project before you delete it.",
    )
  }
  const deleting_at = secondsFromNow(accounts.KEPT_SECONDS)
  await enqueue(tx, purgeProject, { payload: { id }, project_id: null, run_at: deleting_at })
  const changes = { status: "deleting" as const, deleting_at }
  return project.update(tx, { ...by, account_id }, before, changes, "deleted")
}

/** Throws 403 `plan_limit_exceeded` when others took its place meanwhile. */
export async function restore(tx: Tx, id: string, ceiling: ProjectLimit, by: audit.By) {
  const { account_id } = ceiling
  await accounts.findForUpdate(tx, account_id)
  const before = await project.find(tx, account_id, id)
  if (before.status === "active") {
    conflict(
      "not_deleted",
      id,
      "This project is not being deleted, so there is nothing to restore.",
    )
  }
  await requireRoomForOne(tx, ceiling)
  const changes = { status: "active" as const, deleting_at: null }
  return project.update(tx, { ...by, account_id }, before, changes, "restored")
}

/** No slug that a person may choose begins like this. */
export const INSTANCE_SLUG = "~belfry"

/**
 * The instance's own project, from which it sends its own mail; made where there is none. Hidden,
 * and of an account without members: no key, no person and no list ever reaches what it holds.
 */
export async function instanceProject(tx: Tx): Promise<ProjectHome> {
  const known = await findInstance(tx)
  if (known) return known
  const times = { created_at: now(), updated_at: now() }
  const home = { id: newId(), name: "Belfry", slug: INSTANCE_SLUG, ...times }
  // Two nodes may come here together: the slug decides, and the loser reads what won.
  await tx
    .insert(accountTable)
    .values({
      ...home,
      plan: "enterprise",
      settings: { track_opens: false, track_clicks: false, require_mfa: false },
      status: "active",
      sending_status: "active",
    })
    .onConflictDoNothing()
  const [account] = await tx.select().from(accountTable).where(eq(accountTable.slug, INSTANCE_SLUG))
  const project = { ...home, id: newId(), account_id: account?.id ?? home.id }
  await tx
    .insert(projects)
    .values({ ...project, status: "active", settings: {}, hidden: true })
    .onConflictDoNothing()
  return (await findInstance(tx)) ?? { account_id: project.account_id, project_id: project.id }
}

/** Undefined until the first mail of the instance. */
export async function findInstance(db: Pick<Tx, "select">): Promise<ProjectHome | undefined> {
  const [found] = await db
    .select({ account_id: projects.account_id, project_id: projects.id })
    .from(projects)
    .where(eq(projects.hidden, true))
    .limit(1)
  return found
}

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
  db.select({ id: projects.id }).from(projects).where(visible(account_id))

/** The projects in which a person has a role that does not come from the account. */
export async function projectsOf(db: Reader, account_id: string, user_id: string) {
  const rows = await db
    .select({ id: projectMembers.project_id })
    .from(projectMembers)
    .innerJoin(projects, eq(projects.id, projectMembers.project_id))
    .where(and(eq(projectMembers.user_id, user_id), eq(projects.account_id, account_id)))
  return rows.map(({ id }) => id)
}
