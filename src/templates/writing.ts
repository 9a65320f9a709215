import { fail } from "../core/errors"
import type { Workers } from "../core/workers"
import type { Caller } from "../identity/caller"
import type { Reader, Store, Tx } from "../store/store"
import type { TemplateContent } from "./tables"
import {
  afterChanges,
  type NewTemplate,
  requireTexts,
  type TemplateChanges,
  type TemplateTexts,
} from "./template-input"
import type { TemplateRow } from "./template-record"
import { included } from "./template-sources"
import * as rows from "./templates"
import { textsOf } from "./texts"
import { invalidTemplate, validateTexts } from "./validate-template"
import type { UsedPartial } from "./validate-template-task"
import { findVersion } from "./versions"

interface WritingParts {
  store: Store
  workers: Workers
}

/** A template that is valid and can be written. */
export interface ValidTemplate {
  labels: rows.TemplateLabels
  written: rows.WrittenVersion
}

/** Throws 422 `invalid_template`. */
export async function validateNew(
  parts: WritingParts,
  { project_id }: Caller,
  input: NewTemplate,
): Promise<ValidTemplate> {
  const { name, description = null, tags = [], draft = false } = input
  const publish = !draft
  const content = await validate(
    parts,
    { project_id, id: null, name },
    afterChanges(input),
    publish,
  )
  return { labels: { name, description, tags }, written: { content, publish, note: null } }
}

/** Times that a change is validated again because another one came first. */
const MOST_TRIES = 5

/**
 * Adds a version with the changes; `whole` replaces all that the template said. It is published unless
 * `draft` is set; a change of a part, only when sends use the newest version. Throws 422
 * `invalid_template`, 404 and 409.
 */
export async function change(
  { store, workers }: WritingParts,
  caller: Caller,
  id: string,
  input: TemplateChanges,
  whole: boolean,
): Promise<TemplateRow> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const known = await rows.find(store.read, caller.project_id, id)
    const { content } = await findVersion(store.read, known, known.version)
    const { labels, written } = await validateChange(
      { store, workers },
      known,
      content,
      input,
      whole,
    )
    const row = await store.tx(async (tx) => {
      const before = await rows.forUpdate(tx, caller.project_id, id)
      const is_same =
        before.version === known.version && before.published_version === known.published_version
      return is_same ? rows.write(tx, caller, before, labels, written) : undefined
    })
    if (row) return row
  }
  return fail("conflict", "Others change this template at the same moment. Try again.", {
    reason: "busy",
    id,
  })
}

async function validateChange(
  parts: WritingParts,
  row: TemplateRow,
  content: TemplateContent,
  input: TemplateChanges,
  whole: boolean,
): Promise<ValidTemplate> {
  const texts = afterChanges(input, whole ? undefined : content)
  requireTexts(texts)
  const is_current = row.status === "published" && row.published_version === row.version
  const publish = whole ? input.draft !== true : is_current && input.draft !== true
  const before = whole ? { description: null, tags: [] } : row
  const { name = row.name, description = before.description, tags = before.tags } = input
  return {
    labels: { name, description, tags },
    written: {
      content: await validate(parts, { ...row, name }, texts, publish),
      publish,
      note: null,
    },
  }
}

/** What is published must be complete: its layout and all that it includes are published, too. */
async function validate(
  { store, workers }: WritingParts,
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
export async function requirePublishable(
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
