import { and, eq, inArray, lte, notInArray, or, type SQL } from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import type { Blobs } from "../core/blobs"
import { now } from "../core/time"
import { accounts, projects } from "../identity/tables"
import { jobs } from "../jobs/tables"
import { messageFiles } from "../messages/tables"
import { quotas } from "../plans/tables"
import { forUpdate } from "../store/columns"
import type { Reader, Store, Tx } from "../store/store"
import { counters } from "../store/tables"
import { purgeAccount } from "../tenancy/accounts"
import { purgeProject } from "../tenancy/projects"
import { removeHourOf } from "../webhooks/endpoint-counts"
import { removeSomeOf } from "../webhooks/retention"
import { type FileTable, unnamedAmong } from "./file-sweep"
import { columnOf, indexFrom, keyOf, namedBy, parentsOf, tableLives } from "./table-lives"

/** Rows of one transaction, and of one look: others work in between. */
const AT_ONCE = 200

export interface PurgeParts {
  store: Store
  blobs: Blobs
}

/** Removes a project whose days are over, with all that names it; not one that was restored. */
export async function purgeProjectNow(parts: PurgeParts, id: string): Promise<void> {
  const over = and(eq(projects.id, id), lte(projects.deleting_at, now()))
  const [project] = await parts.store.read.select().from(projects).where(over)
  if (project) await emptyProject(parts, id)
}

/** What it used stays with the account. */
async function emptyProject({ store, blobs }: PurgeParts, project_id: string) {
  while ((await store.tx((tx) => removeHourOf(tx, project_id))) > 0);
  while ((await store.tx((tx) => removeSomeOf(tx, project_id))) > 0);
  await removeOwner({ store, blobs }, { kind: "project", id: project_id }, async (tx) => {
    const kept = [purgeProject.name, purgeAccount.name]
    await tx.delete(jobs).where(and(eq(jobs.project_id, project_id), notInArray(jobs.name, kept)))
    await tx.delete(projects).where(eq(projects.id, project_id))
  })
}

/** The same for an account, its projects and its audit log. */
export async function purgeAccountNow(parts: PurgeParts, id: string): Promise<void> {
  const { read } = parts.store
  const over = and(eq(accounts.id, id), lte(accounts.deleting_at, now()))
  const [account] = await read.select().from(accounts).where(over)
  if (!account) return
  const ours = eq(projects.account_id, id)
  for (const project of await read.select().from(projects).where(ours)) {
    await emptyProject(parts, project.id)
  }
  await removeOwner(parts, { kind: "account", id }, async (tx) => {
    await tx.delete(quotas).where(eq(quotas.subject, id))
    await tx.delete(accounts).where(eq(accounts.id, id))
  })
}

/** They go last, in the transaction that removes their owner. */
const LAST: SQLiteTable[] = [counters, jobs, projects]

/**
 * Removes the rows of an owner from every table in which an index finds them. Where none does, the tables have little:
 * they are gone through once, in the transaction that ends with `last`.
 */
async function removeOwner(
  { store, blobs }: PurgeParts,
  { kind, id }: { kind: "project" | "account"; id: string },
  last: (tx: Tx) => Promise<void>,
): Promise<void> {
  const once: SQLiteColumn[] = []
  for (const { table, owner } of tableLives) {
    const column = owner === kind && columnOf(table, `${kind}_id`)
    if (!column || LAST.includes(table)) continue
    const order = indexFrom(column)
    // Without an index they go with the rows that they name.
    if (!order && !parentsOf(table).some((parent) => indexFrom(parent.column))) once.push(column)
    if (!order) continue
    for (let rows = AT_ONCE; rows > 0; ) {
      const removed = await store.tx((tx) => removeSome(tx, table, eq(column, id), order))
      rows = removed.rows
      await removeUnnamed(store.read, blobs, removed.files)
    }
  }
  await store.tx(async (tx) => {
    for (const column of once) await tx.delete(column.table).where(eq(column, id))
    await tx.delete(counters).where(eq(counters.project_id, id))
    await last(tx)
  })
}

/** Deletes some rows and what names them. Files are shared by content, so those of the rows may stay. */
async function removeSome(tx: Tx, table: SQLiteTable, ours: SQL, order: SQLiteColumn[]) {
  const key = keyOf(table)
  const columns = Object.fromEntries(key.map((column) => [column.name, column]))
  const some = tx.select(columns).from(table).where(ours)
  const rows = await some.orderBy(...order).limit(AT_ONCE)
  const [id, ...others] = key
  if (rows.length === 0 || !id) return { rows: 0, files: [] }
  const valuesOf = (column: SQLiteColumn) => rows.map((row) => row[column.name])
  const these =
    others.length === 0
      ? inArray(id, valuesOf(id))
      : or(...rows.map((row) => and(...key.map((column) => eq(column, row[column.name])))))
  await forUpdate(
    tx
      .select(columns)
      .from(table)
      .where(these)
      .orderBy(...key),
  ) // as others lock them
  const files: string[] = []
  for (const column of others.length === 0 ? namedBy(table) : []) {
    const named = inArray(column, valuesOf(id))
    if (column === messageFiles.message_id) {
      const { sha256 } = messageFiles
      const found = await tx.selectDistinct({ sha256 }).from(messageFiles).where(named)
      files.push(...found.map((row) => row.sha256))
    }
    await tx.delete(column.table).where(named)
  }
  await tx.delete(table).where(these)
  return { rows: rows.length, files }
}

/**
 * Removes those of the files that no row of the table names. A file that is younger than an hour stays. What a
 * crash leaves behind, `file-sweep.ts` finds.
 */
export async function removeUnnamed(
  db: Reader,
  blobs: Blobs,
  files: string[],
  table: FileTable = messageFiles,
): Promise<void> {
  for await (const sha256 of unnamedAmong(db, table, files)) await blobs.remove(sha256)
}
