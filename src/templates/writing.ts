import { and, asc, desc, eq, getTableColumns, gt, lt } from "drizzle-orm"
import { fail } from "../core/errors"
import { now } from "../core/time"
import type { Workers } from "../core/workers"
import type { Page } from "../http/page"
import type { Caller } from "../identity/caller"
import { countAlong, type ListWindow } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import { type TemplateContent, templateVersions } from "./tables"
import {
  afterChanges,
  type NewTemplate,
  requireTexts,
  type TemplateChanges,
  type TemplateTexts,
} from "./template-input"
import { included, textsOf } from "./template-sources"
import * as rows from "./templates"
import { invalidTemplate, validateTexts } from "./validate-template"
import type { UsedPartial } from "./validate-template-task"

type VersionRow = typeof templateVersions.$inferSelect

const noVersion = (version: number | string): never =>
  fail("not_found", `The template has no version ${version}.`)

const ofTemplate = ({ id, project_id }: rows.TemplateRow) =>
  and(eq(templateVersions.template_id, id), eq(templateVersions.project_id, project_id))

/** Throws 404 `not_found`. */
export async function findVersion(
  db: Reader,
  row: rows.TemplateRow,
  version: number,
): Promise<VersionRow> {
  const one = and(ofTemplate(row), eq(templateVersions.version, version))
  const [found] = await db.select().from(templateVersions).where(one)
  return found ?? noVersion(version)
}

/** Of a number in a path. Throws 404 `not_found` for a text that is no number. */
export const versionOf = (text: string): number =>
  /^\d{1,9}$/.test(text) ? Number(text) : noVersion(text)

/** Newest first. A version's id in a page is its number. */
export async function listVersions(
  db: Reader,
  row: rows.TemplateRow,
  { after, before, limit, offset }: ListWindow,
): Promise<Page<{ id: string } & Omit<VersionRow, "content">>> {
  const all = ofTemplate(row)
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
  { version, uses }: { version: number | undefined; uses: rows.TemplateUses },
): Promise<rows.TemplateRow> {
  await requirePublishable(tx, caller.project_id, id, version)
  const before = await rows.forUpdate(tx, caller.project_id, id)
  const wanted = version ?? before.version
  const { content } = await findVersion(tx, before, wanted)
  await uses.requireFit(tx, before.project_id, before.id, content)
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
  { version, uses }: { version: number; uses: rows.TemplateUses },
): Promise<rows.TemplateRow> {
  await requirePublishable(tx, caller.project_id, id, version)
  const before = await rows.forUpdate(tx, caller.project_id, id)
  const { content } = await findVersion(tx, before, version)
  await uses.requireFit(tx, before.project_id, before.id, content)
  const note = `Rolled back to version ${version}.`
  return rows.write(tx, caller, before, labelsOf(before), { content, publish: true, note })
}

const labelsOf = ({ name, description, tags }: rows.TemplateRow) => ({ name, description, tags })

/** A new template with the texts of the newest version of this one. */
export async function duplicate(
  tx: Tx,
  caller: Caller,
  id: string,
  name: string | undefined,
): Promise<rows.TemplateRow> {
  const source = await rows.find(tx, caller.project_id, id)
  const { content } = await findVersion(tx, source, source.version)
  const copy = name ?? (await rows.freeCopyName(tx, source.project_id, source.name))
  const labels = { ...labelsOf(source), name: copy }
  const note = `Copied from ${source.name}, version ${source.version}.`
  const publish = source.published_version === source.version && source.status === "published"
  return rows.create(tx, caller, labels, { content, publish, note })
}

interface WritingParts {
  store: Store
  workers: Workers
  template_uses: rows.TemplateUses
}

/** A template that is valid and can be written. */
interface ValidTemplate {
  labels: rows.TemplateLabels
  written: rows.WrittenVersion
}

/** Throws 422 `invalid_template`. */
export async function validateNew(
  parts: Pick<WritingParts, "store" | "workers">,
  { project_id }: Caller,
  input: NewTemplate,
): Promise<ValidTemplate> {
  const { name, description = null, tags = [], draft = false } = input
  const texts = afterChanges(input)
  const content = await validate(parts, { project_id, id: null, name }, texts, !draft)
  return { labels: { name, description, tags }, written: { content, publish: !draft, note: null } }
}

/** Times that a change is validated again because another one came first. */
const MOST_TRIES = 5

/**
 * Adds a version with the changes; `whole` replaces all that the template said. It is published unless
 * `draft` is set; a change of a part, only when sends use the newest version. Throws 422
 * `invalid_template`, 404 and 409.
 */
export async function change(
  parts: WritingParts,
  caller: Caller,
  id: string,
  input: TemplateChanges,
  whole: boolean,
): Promise<rows.TemplateRow> {
  const { store, template_uses: uses } = parts
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const known = await rows.find(store.read, caller.project_id, id)
    const { labels, written } = await validateChange(parts, known, input, whole)
    const row = await store.tx(async (tx) => {
      const before = await rows.forUpdate(tx, caller.project_id, id)
      const is_same =
        before.version === known.version && before.published_version === known.published_version
      if (!is_same) return undefined
      if (written.publish) await uses.requireFit(tx, before.project_id, id, written.content)
      return rows.write(tx, caller, before, labels, written)
    })
    if (row) return row
  }
  const message = "Others change this template at the same moment. Try again."
  return fail("conflict", message, { reason: "busy", id })
}

async function validateChange(
  parts: WritingParts,
  row: rows.TemplateRow,
  input: TemplateChanges,
  whole: boolean,
): Promise<ValidTemplate> {
  const { content: newest } = await findVersion(parts.store.read, row, row.version)
  const texts = afterChanges(input, whole ? undefined : newest)
  requireTexts(texts)
  const is_current = row.status === "published" && row.published_version === row.version
  const publish = whole ? input.draft !== true : is_current && input.draft !== true
  const before = whole ? { description: null, tags: [] } : row
  const { name = row.name, description = before.description, tags = before.tags } = input
  const content = await validate(parts, { ...row, name }, texts, publish)
  return { labels: { name, description, tags }, written: { content, publish, note: null } }
}

/** What is published must be complete: its layout and all that it includes are published, too. */
async function validate(
  { store, workers }: Pick<WritingParts, "store" | "workers">,
  template: NamedTemplate,
  texts: TemplateTexts,
  publish: boolean,
): Promise<TemplateContent> {
  const all = textsOf(texts)
  const { names, partials, content_fields } = await validateTexts(workers, all)
  const content = {
    ...texts,
    detected_variables: names,
    partials: [...new Set(partials.map(({ name }) => name))].sort(),
  }
  if (publish) await requireIncluded(store.read, template, content, partials)
  const hiding = all.find(({ field }) => IN_LAYOUT.test(field) && !content_fields.includes(field))
  if (publish && hiding && (await rows.isLayout(store.read, template))) throw noPlace(hiding.field)
  return content
}

/** The texts of a layout that go around those of other templates. */
const IN_LAYOUT = /^(locales\.[^.]+\.)?(html|text)$/

interface NamedTemplate {
  project_id: string
  /** Null before it is made. */
  id: string | null
  name: string
}

/** Throws 422 `invalid_template` where something that the template includes is not published. */
async function requireIncluded(
  db: Reader,
  { project_id, id, name }: NamedTemplate,
  content: TemplateContent,
  partials: UsedPartial[],
): Promise<void> {
  const found = await included(db, project_id, { ...content, id, name })
  if (!("missing" in found)) return requirePlace(content, found.layouts[0]?.content)
  const { missing, reason } = found
  const place = partials.find(({ name }) => name === missing)
  const { line = null, column = null } = place ?? {}
  const message = reason === "too_deep" ? TOO_DEEP : notThere(missing)
  const field = place?.field ?? (missing === content.layout_id ? "layout_id" : "body")
  throw invalidTemplate(field, { reason: "syntax", message, line, column })
}

const TOO_DEEP = "Templates include each other more than 5 levels deep, or in a circle."
const notThere = (name: string) =>
  `This project has no published template ${name}. Publish it first, or write a draft.`

/** A layout that has no place for the text would hide it. */
function requirePlace({ channels }: TemplateContent, layout: TemplateContent | undefined): void {
  if (!layout || !channels.email?.html) return
  if (layout.detected_variables.includes("content")) return
  throw noPlace("layout_id")
}

const noPlace = (field: string) => {
  const message = "The layout has no place for the text of its templates. It needs {{{content}}}."
  return invalidTemplate(field, { reason: "syntax", message, line: null, column: null })
}

/** Publishing shows what is missing as a 409: the template itself is not at fault. */
async function requirePublishable(
  tx: Tx,
  project_id: string,
  id: string,
  version: number | undefined,
): Promise<void> {
  const row = await rows.find(tx, project_id, id)
  const { content } = await findVersion(tx, row, version ?? row.version)
  const found = await included(tx, project_id, { ...content, id: row.id, name: row.name })
  if (!("missing" in found)) return
  const { missing, reason } = found
  const message = reason === "too_deep" ? TOO_DEEP : notThere(missing)
  fail("conflict", message, { reason, missing })
}
