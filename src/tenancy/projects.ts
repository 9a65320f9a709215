import { and, asc, eq, inArray, type SQL } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import { now, secondsFromNow } from "../core/time"
import { accounts as accountTable, projects } from "../identity/tables"
import { enqueue, type JobKind } from "../jobs/jobs"
import { slugFrom } from "../lib/text"
import { requireRoom } from "../plans/plans"
import { countRows, rowById, rowList } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import * as accounts from "./accounts"

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
  const slug = await freeSlug(tx, account_id, wanted)
  const row: ProjectRow = {
    id: newId(),
    account_id,
    name,
    slug,
    status: "active",
    settings: {},
    hidden: false,
    deleting_at: null,
    created_at: now(),
    updated_at: now(),
  }
  await tx.insert(projects).values(row)
  await log(tx, by, row, "project.created", { after: row })
  return row
}

type ProjectLimit = Pick<NewProject, "account_id" | "limit" | "plan">

async function requireRoomForOne(tx: Tx, { account_id, limit, plan }: ProjectLimit) {
  const used = await countActive(tx, account_id)
  requireRoom({ resource: "projects", used, limit, plan })
}

/** An account has few projects, so counting them is cheaper than keeping a total. */
const countActive = (db: Reader, account_id: string): Promise<number> =>
  countRows(db, projects, and(visible(account_id), eq(projects.status, "active")))

async function freeSlug(
  tx: Tx,
  account_id: string,
  { name, slug }: Pick<NewProject, "name" | "slug">,
): Promise<string> {
  const wish = slug ?? (slugFrom(name) || "project")
  const [taken] = await bySlug(tx, account_id, wish)
  if (!taken) return wish
  if (slug === undefined) return `${wish}-${newId().slice(-8)}`
  return slugTaken(taken)
}

const bySlug = (tx: Tx, account_id: string, slug: string) =>
  tx
    .select()
    .from(projects)
    .where(and(eq(projects.account_id, account_id), eq(projects.slug, slug)))

const slugTaken = ({ id, slug }: ProjectRow) =>
  fail("conflict", `Another project of this account has the slug ${slug}. Choose another slug.`, {
    reason: "slug_taken",
    id,
  })

const visible = (account_id: string): SQL | undefined =>
  and(eq(projects.account_id, account_id), eq(projects.hidden, false))

/** Of this account and not hidden; those being deleted too. Throws 404. */
export const find = async (db: Reader, account_id: string, id: string): Promise<ProjectRow> =>
  (await rowById(db, projects, id, visible(account_id))) ?? noProject()

const noProject = () => fail("not_found", "There is no such project.")

/** Newest first, of those that the caller may see: `only` has their ids, undefined is all. */
export const list = (db: Reader, account_id: string, only: string[] | undefined) =>
  rowList(db, projects, {
    of: and(visible(account_id), only ? inArray(projects.id, only) : undefined),
    missing: noProject,
  })

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
  const before = await find(tx, account_id, id)
  const { name = before.name, slug = before.slug } = wanted
  const [taken] = await bySlug(tx, account_id, slug)
  if (taken && taken.id !== id) slugTaken(taken)
  return change(tx, before, { name, slug }, "project.updated", by)
}

async function change(
  tx: Tx,
  before: ProjectRow,
  changes: Partial<ProjectRow>,
  action: string,
  by: audit.By,
): Promise<ProjectRow> {
  const written = { ...changes, updated_at: now() } // only that: others may change the settings
  await tx.update(projects).set(written).where(eq(projects.id, before.id))
  const after = { ...before, ...written }
  await log(tx, by, after, action, { before, after })
  return after
}

/** Its keys stop at once; it can be restored for a week. The last one of an account stays. */
export async function remove(tx: Tx, account_id: string, id: string, by: audit.By) {
  await accounts.findForUpdate(tx, account_id)
  const before = await find(tx, account_id, id)
  if (before.status === "deleting") noProject()
  if ((await countActive(tx, account_id)) <= 1) {
    fail(
      "conflict",
      "This is the last project of the account. Make another project before you delete it.",
      { reason: "last_project", id },
    )
  }
  const deleting_at = secondsFromNow(accounts.KEPT_SECONDS)
  await enqueue(tx, purgeProject, { payload: { id }, project_id: null, run_at: deleting_at })
  return change(tx, before, { status: "deleting", deleting_at }, "project.deleted", by)
}

/** Throws 403 `plan_limit_exceeded` when others took its place meanwhile. */
export async function restore(tx: Tx, id: string, ceiling: ProjectLimit, by: audit.By) {
  await accounts.findForUpdate(tx, ceiling.account_id)
  const before = await find(tx, ceiling.account_id, id)
  if (before.status === "active") {
    fail("conflict", "This project is not being deleted, so there is nothing to restore.", {
      reason: "not_deleted",
      id,
    })
  }
  await requireRoomForOne(tx, ceiling)
  return change(tx, before, { status: "active", deleting_at: null }, "project.restored", by)
}

/** The Project record of the contract. */
export const projectRecord = (row: ProjectRow) => ({
  id: row.id,
  account_id: row.account_id,
  name: row.name,
  slug: row.slug,
  status: row.status,
  sandbox: row.settings.sandbox ?? false,
  created_at: row.created_at,
  updated_at: row.updated_at,
})

const record = audit.recorder("project")

const log = (tx: Tx, by: audit.By, row: ProjectRow, action: string, change: audit.AuditChange) =>
  record(tx, by, { ...row, project_id: row.id }, action, change)

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
