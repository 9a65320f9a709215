import { and, asc, desc, eq, getTableColumns, gt, lt } from "drizzle-orm"
import { fail } from "../core/errors"
import { now } from "../core/time"
import type { Page } from "../http/page"
import type { Caller } from "../identity/caller"
import { countAlong, type ListWindow } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { templateVersions } from "./tables"
import type { TemplateRow } from "./template-record"
import * as rows from "./templates"

type VersionRow = typeof templateVersions.$inferSelect

const noVersion = (version: number | string): never =>
  fail("not_found", `The template has no version ${version}.`)

const one = (row: TemplateRow, version: number) =>
  and(
    eq(templateVersions.template_id, row.id),
    eq(templateVersions.project_id, row.project_id),
    eq(templateVersions.version, version),
  )

/** Throws 404 `not_found`. */
export async function findVersion(
  db: Reader,
  row: TemplateRow,
  version: number,
): Promise<VersionRow> {
  const [found] = await db.select().from(templateVersions).where(one(row, version))
  return found ?? noVersion(version)
}

/** Of a number in a path. Throws 404 `not_found` for a text that is no number. */
export const versionOf = (text: string): number =>
  /^\d{1,9}$/.test(text) ? Number(text) : noVersion(text)

/** Newest first. A version's id in a page is its number. */
export async function listVersions(
  db: Reader,
  row: TemplateRow,
  { after, before, limit, offset }: ListWindow,
): Promise<Page<{ id: string } & Omit<VersionRow, "content">>> {
  const all = and(
    eq(templateVersions.template_id, row.id),
    eq(templateVersions.project_id, row.project_id),
  )
  const { where, order } = newestByNumber(after, before)
  const { content: _, ...columns } = getTableColumns(templateVersions)
  const some = db.select(columns).from(templateVersions).where(and(all, where))
  const found = await some.orderBy(order).limit(limit).offset(offset)
  return {
    rows: found.map((version) => ({ id: String(version.version), ...version })),
    total: () =>
      countAlong(db, { rows: templateVersions, id: templateVersions.version, where: all }),
  }
}

function newestByNumber(after: string | undefined, before: string | undefined) {
  const { version } = templateVersions
  if (before !== undefined) return { where: gt(version, Number(before)), order: asc(version) }
  const where = after === undefined ? undefined : lt(version, Number(after))
  return { where, order: desc(version) }
}

/**
 * Sends use this version from now on; without a number the newest one. An archived template comes back.
 */
export async function publish(
  tx: Tx,
  caller: Caller,
  id: string,
  version: number | undefined,
): Promise<TemplateRow> {
  const before = await rows.forUpdate(tx, caller.project_id, id)
  const wanted = version ?? before.version
  await findVersion(tx, before, wanted)
  if (before.status === "published" && before.published_version === wanted) return before
  const changes = {
    status: "published" as const,
    published_version: wanted,
    published_at: now(),
  }
  return rows.template.update(tx, caller, before, changes, "published")
}

/** A new version with the texts of an old one, which sends use at once. */
export async function rollBack(
  tx: Tx,
  caller: Caller,
  id: string,
  version: number,
): Promise<TemplateRow> {
  const before = await rows.forUpdate(tx, caller.project_id, id)
  const { content } = await findVersion(tx, before, version)
  const note = `Rolled back to version ${version}.`
  return rows.write(tx, caller, before, labelsOf(before), { content, publish: true, note })
}

const labelsOf = ({ name, description, tags }: TemplateRow) => ({ name, description, tags })

/** A new template with the texts of the newest version of this one. */
export async function duplicate(
  tx: Tx,
  caller: Caller,
  id: string,
  name: string | undefined,
): Promise<TemplateRow> {
  const source = await rows.find(tx, caller.project_id, id)
  const { content } = await findVersion(tx, source, source.version)
  const copy = name ?? (await rows.freeCopyName(tx, source.project_id, source.name))
  const labels = { ...labelsOf(source), name: copy }
  const note = `Copied from ${source.name}, version ${source.version}.`
  const publish = source.published_version === source.version && source.status === "published"
  return rows.create(tx, caller, labels, { content, publish, note })
}
