import { and, eq } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail, invalid } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import type { Caller } from "../identity/caller"
import { holdProject } from "../identity/hold-project"
import type { AudienceChannel } from "../lib/preferences"
import { nearest, shortened, slugFrom } from "../lib/text"
import { cached } from "../store/cached"
import { countRows, holdById, type RowList, rowById, rowList } from "../store/rows"
import { prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { categories } from "./tables"

export type CategoryRow = typeof categories.$inferSelect

/** Of a project. Sends remember all of them. */
export const MOST_CATEGORIES = 200

export interface NewCategory {
  name: string
  slug: string | undefined
  description: string | null
  critical: boolean
  default: "on" | "off"
  visibility: "public" | "private"
  channels: AudienceChannel[]
}

export type CategoryChange = Partial<Omit<NewCategory, "slug">>

/** How long sends on another node may go on without a category that this node has made. */
const TRUSTED_MS = 1000

const ofProjects = cached<ReadonlyMap<string, CategoryRow>>({
  tables: ["categories"],
  most: 1000,
})

/**
 * The categories of a project by slug; an empty map means that it has none. A promise only where it reads.
 * With `recent` the answer on Postgres may be a second old.
 */
export const knownCategories = (
  db: Reader,
  project_id: string,
  { recent = false } = {},
): ReadonlyMap<string, CategoryRow> | Promise<ReadonlyMap<string, CategoryRow>> =>
  ofProjects(db, project_id, () => readAll(db, project_id), recent ? TRUSTED_MS : 0)

async function readAll(db: Reader, project_id: string) {
  const rows = await findAll(db, { project_id })
  return new Map(rows.map((row) => [row.slug, row]))
}

const findAll = prepared({ project_id: categories.project_id }, (db: Reader, slot) =>
  db.select().from(categories).where(eq(categories.project_id, slot.project_id)),
)

/** Throws 422 `unknown_category` where the project has categories, and not this one. */
export async function demandCategory(
  db: Reader,
  project_id: string,
  slug: string | null | undefined,
): Promise<void> {
  if (slug != null) demandAmong(await knownCategories(db, project_id), slug)
}

/** As `demandCategory`, of categories that were read. */
export function demandAmong(known: ReadonlyMap<string, unknown>, slug: string): void {
  if (known.size === 0 || known.has(slug)) return
  throw invalid("category", UNKNOWN_CATEGORY, noSuchCategory(slug, known.keys()))
}

export const UNKNOWN_CATEGORY = "unknown_category"

/** What people are told of a slug that the project does not have. One of `known` that is near is offered. */
export function noSuchCategory(slug: string, known: Iterable<string>): string {
  const name = shortened(slug)
  const near = nearest(name, [...known])
  const hint = near?.is_near ? ` The nearest is ${near.text}.` : ""
  return `The project has no category ${JSON.stringify(name)}.${hint} GET /v1/subscribers/categories lists all.`
}

/** Of this project. Throws 404. */
export const find = async (db: Reader, project_id: string, id: string): Promise<CategoryRow> =>
  (await rowById(db, categories, id, eq(categories.project_id, project_id))) ?? noCategory()

const noCategory = () => fail("not_found", "There is no such category.")

/** Newest first. */
export const list = (db: Reader, project_id: string): RowList<CategoryRow> =>
  rowList(db, categories, { of: eq(categories.project_id, project_id), missing: noCategory })

/** Throws 409 `conflict` where the slug is taken, and 422 at the limit. */
export async function create(tx: Tx, caller: Caller, given: NewCategory): Promise<CategoryRow> {
  const { project_id } = caller
  await holdProject(tx, project_id)
  await demandRoom(tx, project_id)
  const { name } = given
  const slug = given.slug ?? slugFrom(name)
  if (slug === "") throw invalid("slug", "required", NO_SLUG)
  const row: CategoryRow = {
    id: newId(),
    project_id,
    ...given,
    channels: [...new Set(given.channels)],
    slug,
    created_at: now(),
    updated_at: now(),
  }
  const added = await tx.insert(categories).values(row).onConflictDoNothing().returning()
  if (added.length === 0) return slugTaken(tx, project_id, slug)
  await record(tx, caller, "created", { after: row }, row.id)
  return row
}

const NO_SLUG = "The name has no letter from a to z and no digit to make a slug of. Give a slug."

async function demandRoom(tx: Tx, project_id: string) {
  const used = await countRows(tx, categories, eq(categories.project_id, project_id))
  if (used < MOST_CATEGORIES) return
  const text = `A project has at most ${MOST_CATEGORIES} categories. Delete one first.`
  throw invalid("name", "too_many", text)
}

async function slugTaken(tx: Tx, project_id: string, slug: string): Promise<never> {
  const [row] = await tx
    .select()
    .from(categories)
    .where(and(eq(categories.project_id, project_id), eq(categories.slug, slug)))
  const details = { reason: "slug_taken", ...(row && { id: row.id }) }
  return fail("conflict", `Another category has the slug ${slug}. Choose another slug.`, details)
}

/** What the change does not name stays. Throws 404. */
export async function patch(
  tx: Tx,
  caller: Caller,
  id: string,
  change: CategoryChange,
): Promise<CategoryRow> {
  const before = await hold(tx, caller.project_id, id)
  const row: CategoryRow = { ...before, ...change, updated_at: now() }
  row.channels = [...new Set(row.channels)]
  await tx.update(categories).set(row).where(eq(categories.id, id))
  await record(tx, caller, "updated", { before, after: row }, id)
  return row
}

/** Of this project, until the end of the transaction. Throws 404. */
export const hold = async (tx: Tx, project_id: string, id: string): Promise<CategoryRow> =>
  (await holdById(tx, categories, id, eq(categories.project_id, project_id))) ?? noCategory()

/** What people chose about it stays, and holds again for a category with the same slug. */
export async function remove(tx: Tx, caller: Caller, row: CategoryRow): Promise<void> {
  await tx.delete(categories).where(eq(categories.id, row.id))
  await record(tx, caller, "deleted", { before: row }, row.id)
}

function record(
  tx: Tx,
  caller: Caller,
  verb: "created" | "updated" | "deleted",
  change: audit.AuditChange,
  id: string,
) {
  const { account_id, project_id } = caller
  const target = { type: "category", id }
  return audit.record(tx, caller, {
    account_id,
    project_id,
    action: `category.${verb}`,
    target,
    ...change,
  })
}

/** The Category record of the contract (43, section 2). */
export function shown({ project_id: _, ...row }: CategoryRow) {
  return row
}
