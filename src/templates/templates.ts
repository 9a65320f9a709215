import type { Static } from "@sinclair/typebox"
import { and, type Column, eq, ne, or, type SQL, sql } from "drizzle-orm"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import { now } from "../core/time"
import type { Caller } from "../identity/caller"
import { noun } from "../identity/noun"
import { partOf, searchable } from "../lib/text"
import type { Reader, Tx } from "../store/store"
import { TEMPLATE_NAME } from "./limits"
import type * as schemas from "./schemas"
import {
  type ChannelTexts,
  type TemplateContent,
  type TemplateSummary,
  templates,
  templateVersions,
} from "./tables"

export type TemplateRow = typeof templates.$inferSelect

/** What uses a template, by kind. */
type TemplateUse = Static<typeof schemas.TemplateRecord>["used_by"]

/** What uses templates by their ids. The features that do are wired in as this; sends name a template each time. */
export interface TemplateUses {
  /** What records show. */
  shown: (db: Reader, project_id: string, template_id: string) => Promise<TemplateUse>
  /** Environments of end users that send mail with it: their names for people. */
  environments: (db: Reader, project_id: string, template_id: string) => Promise<string[]>
  /** Throws 422 `invalid_template` where these texts lack what a feature needs that uses the template. */
  requireFit: (
    db: Reader,
    project_id: string,
    template_id: string,
    content: TemplateContent,
  ) => Promise<void>
}

/** What a record says that stands in no column of the template. */
interface TemplateAround {
  used_by: TemplateUse
  last_sent_at: string | null
}

/** What lists and the columns of a template say of its newest version. */
const summaryOf = (content: TemplateContent): TemplateSummary => ({
  subject: content.channels.email?.subject ?? null,
  variables: content.variables,
  detected_variables: content.detected_variables,
  layout_id: content.layout_id,
  locale: content.locale,
  locales: Object.keys(content.locales).sort(),
})

export function listedTemplate(
  row: TemplateRow,
  around: TemplateAround,
): Static<typeof schemas.ListedTemplate> {
  const { locales, ...summary } = row.summary
  return { ...basics(row), ...summary, ...around, locales: locales.map((locale) => ({ locale })) }
}

/** The Template record of the contract, with the texts of one version. */
export function toResponse(
  row: TemplateRow,
  { version, content }: { version: number; content: TemplateContent },
  around: TemplateAround,
): Static<typeof schemas.TemplateRecord> {
  const { channels, locales } = content
  const { locales: _, ...summary } = summaryOf(content)
  const others = Object.entries(locales).sort(([one], [other]) => (one < other ? -1 : 1))
  return {
    ...basics(row),
    ...summary,
    ...around,
    version,
    ...flat(channels),
    channels,
    locales: others.map(([locale, texts]) => ({ locale, ...flat(texts), channels: texts })),
  }
}

const flat = ({ email }: ChannelTexts) => ({
  subject: email?.subject ?? null,
  html: email?.html ?? null,
  text: email?.text ?? null,
})

/** Without the columns for searches and the summary of texts. */
function basics(row: TemplateRow) {
  const { account_id, summary, search_key, tag_key, channel_key, ...rest } = row
  const { partial_key, layout_id, ...own } = rest
  return own
}

const ours = (project_id: string): SQL => eq(templates.project_id, project_id)

const noTemplate = (name?: string): never =>
  fail("template_not_found", `There is no template ${name ?? "with this id"} in this project.`)

/** Its id names it here; senders may name it by its name, too. */
export const template = noun({
  name: "template",
  table: templates,
  missing: noTemplate,
  unique: {
    column: "name",
    message: (name) =>
      `This project already has a template with the name ${name}. Choose another name.`,
  },
  counter: "templates", // tenancy/resources.ts reads it too
  /** Without the texts: the versions keep them. */
  audited: (row: TemplateRow) => {
    const { id, project_id, created_at, updated_at, published_at, ...said } = basics(row)
    return said
  },
})

export const { find, forUpdate } = template

/** By its id or its name. Throws 404 `template_not_found`. */
export async function findNamed(
  db: Reader,
  project_id: string,
  id_or_name: string,
): Promise<TemplateRow> {
  const byId = await template.lookup(db, project_id, id_or_name)
  return byId ?? (await lookupName(db, project_id, id_or_name)) ?? noTemplate(id_or_name)
}

/** The id that a filter means, which may name the template; undefined without a filter. */
export async function templateIdOf(db: Reader, project_id: string, asked: string | undefined) {
  if (asked === undefined || isUuid(asked)) return asked
  return (await lookupName(db, project_id, asked))?.id ?? ""
}

/** No template has a name of another form, and Postgres refuses some of these. */
const NAME = new RegExp(TEMPLATE_NAME)

async function lookupName(db: Reader, project_id: string, name: string) {
  if (!NAME.test(name)) return undefined
  const wanted = and(ours(project_id), eq(templates.name, name))
  const [row] = await db.select().from(templates).where(wanted)
  return row
}

/** What a new template and each new version of it say. */
export interface WrittenVersion {
  content: TemplateContent
  /** Whether sends use the version from now on. */
  publish: boolean
  note: string | null
}

/** The fields of a template that are no part of its versions. */
export interface TemplateLabels {
  name: string
  description: string | null
  tags: string[]
}

/** Throws 409 `conflict` when the name is taken. */
export async function create(
  tx: Tx,
  caller: Caller,
  labels: TemplateLabels,
  written: WrittenVersion,
): Promise<TemplateRow> {
  const { content, publish } = written
  const created_at = now()
  const row = await template.insert(tx, caller, {
    ...labels,
    status: publish ? "published" : "draft",
    version: 1,
    published_version: publish ? 1 : null,
    ...keysOf(labels, content),
    created_at,
    published_at: publish ? created_at : null,
  })
  await addVersion(tx, caller, row, written)
  return row
}

/** The columns that follow from what the newest version says. */
function keysOf({ name, description, tags }: TemplateLabels, content: TemplateContent) {
  return {
    summary: summaryOf(content),
    search_key: searchable(`${name}\n${description ?? ""}`),
    tag_key: wordsKey(tags),
    channel_key: wordsKey(Object.keys(content.channels)),
    partial_key: wordsKey(content.partials),
    layout_id: content.layout_id,
  }
}

/** Each word between line breaks, which no word has itself. */
const wordsKey = (words: string[]) => searchable(["", ...words, ""].join("\n"))
const hasWord = (column: Column, word: string) =>
  sql`${column} LIKE ${partOf(`\n${word}\n`)} ESCAPE '\\'`

const addVersion = (
  tx: Tx,
  { actor }: Caller,
  { id, project_id, version, updated_at }: TemplateRow,
  { content, note }: WrittenVersion,
) =>
  tx.insert(templateVersions).values({
    template_id: id,
    version,
    project_id,
    content,
    note,
    created_by: actor,
    created_at: updated_at,
  })

/**
 * Adds a version to a template that the transaction holds. Throws 409 `conflict` when the new name is
 * taken, or when other templates include this one by its old name.
 */
export async function write(
  tx: Tx,
  caller: Caller,
  before: TemplateRow,
  labels: TemplateLabels,
  written: WrittenVersion,
): Promise<TemplateRow> {
  if (labels.name !== before.name) {
    await template.refuseTaken(tx, { ...before, ...labels })
    await refuseIncluded(tx, before, "renamed")
  }
  const version = before.version + 1
  const published = {
    status: "published" as const,
    published_version: version,
    published_at: now(),
  }
  const changes = {
    ...labels,
    ...keysOf(labels, written.content),
    version,
    ...(written.publish && published),
  }
  const after = await template.update(tx, caller, before, changes)
  await addVersion(tx, caller, after, written)
  return after
}

/** Throws 409 `conflict` while something uses the template, unless `force` is set. */
export async function remove(
  tx: Tx,
  caller: Caller,
  id: string,
  { force, uses }: { force: boolean; uses: TemplateUses },
): Promise<void> {
  const row = await forUpdate(tx, caller.project_id, id)
  if (!force) await refuseUsed(tx, row, uses, "deleted")
  await tx.delete(templateVersions).where(eq(templateVersions.template_id, row.id))
  await template.remove(tx, caller, row)
}

/** Sends refuse an archived template. Publishing brings it back. Throws 409 while something uses it. */
export async function archive(
  tx: Tx,
  caller: Caller,
  id: string,
  uses: TemplateUses,
): Promise<TemplateRow> {
  const before = await forUpdate(tx, caller.project_id, id)
  if (before.status === "archived") return before
  await refuseUsed(tx, before, uses, "archived")
  return template.update(tx, caller, before, { status: "archived" }, "archived")
}

async function refuseUsed(tx: Tx, row: TemplateRow, uses: TemplateUses, verb: string) {
  const { workflows, broadcasts } = await uses.shown(tx, row.project_id, row.id)
  const environments = await uses.environments(tx, row.project_id, row.id)
  const count = workflows.length + broadcasts.length + environments.length
  if (count === 0) return refuseIncluded(tx, row, verb)
  const message = `${row.name} cannot be ${verb}, because ${count} workflows, broadcasts or environments use it.`
  fail("conflict", message, {
    reason: "used",
    used_by: { workflows, broadcasts, ...(environments.length > 0 && { environments }) },
  })
}

const MOST_NAMED = 20

/** Templates that have this one as their layout, or include it by its name. */
async function refuseIncluded(tx: Tx, { id, project_id, name }: TemplateRow, verb: string) {
  const uses = or(eq(templates.layout_id, id), hasWord(templates.partial_key, name))
  const users = await tx
    .select({ id: templates.id, name: templates.name })
    .from(templates)
    .where(and(ours(project_id), ne(templates.id, id), uses))
    .limit(MOST_NAMED)
  if (users.length === 0) return
  const named = users.map((user) => user.name).join(", ")
  const message = `${name} cannot be ${verb}, because other templates include it: ${named}.`
  fail("conflict", message, {
    reason: "used",
    used_by: { workflows: [], broadcasts: [], templates: users },
  })
}

/** Whether other templates of the project have this one around their texts. */
export async function isLayout(
  db: Reader,
  { project_id, id }: { project_id: string; id: string | null },
): Promise<boolean> {
  if (id === null) return false
  const users = db.select({ id: templates.id }).from(templates)
  return (await users.where(and(ours(project_id), eq(templates.layout_id, id))).limit(1)).length > 0
}

export const matching = ({
  search,
  channel,
  status,
  tag,
}: Static<typeof schemas.templateQuery>): SQL | undefined =>
  and(
    search === undefined
      ? undefined
      : sql`${templates.search_key} LIKE ${partOf(search)} ESCAPE '\\'`,
    channel === undefined ? undefined : hasWord(templates.channel_key, channel),
    status && eq(templates.status, status),
    tag === undefined ? undefined : hasWord(templates.tag_key, tag),
  )

const COPY = "-copy"
const LONGEST_NAME = 100

/** `receipt-copy`, then `receipt-copy-2`, and so on: the first that no template has. */
export async function freeCopyName(tx: Tx, project_id: string, name: string): Promise<string> {
  const base = name.slice(0, LONGEST_NAME - COPY.length - 6) + COPY
  const similar = sql`${templates.name} LIKE ${partOf(base)} ESCAPE '\\'`
  const rows = await tx
    .select({ name: templates.name })
    .from(templates)
    .where(and(ours(project_id), similar))
  const known = new Set(rows.map((row) => row.name))
  for (let number = 1; ; number++) {
    const wish = number === 1 ? base : `${base}-${number}`
    if (!known.has(wish)) return wish
  }
}
