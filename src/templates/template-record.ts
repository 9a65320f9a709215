import type { Static } from "@sinclair/typebox"
import type { Reader } from "../store/store"
import type * as schemas from "./schemas"
import type { ChannelTexts, TemplateContent, TemplateSummary, templates } from "./tables"

export type TemplateRow = typeof templates.$inferSelect

/** What uses a template, by kind. */
export type TemplateUse = Static<typeof schemas.TemplateRecord>["used_by"]

/** Finds what uses a template. The features that use templates are wired in as such a function. */
export type FindUses = (db: Reader, project_id: string, template_id: string) => Promise<TemplateUse>

/** Where no feature of the server uses templates but sends, which name them each time. */
export const noUses: FindUses = async () => ({ workflows: [], broadcasts: [] })

/** What a record says that stands in no column of the template. */
export interface TemplateAround {
  used_by: TemplateUse
  last_sent_at: string | null
}

/** What lists and the columns of a template say of its newest version. */
export const summaryOf = (content: TemplateContent): TemplateSummary => ({
  subject: content.channels.email?.subject ?? null,
  variables: content.variables,
  detected_variables: content.detected_variables,
  layout_id: content.layout_id,
  locale: content.locale,
  locales: Object.keys(content.locales).sort(),
})

/** A template in a list. */
export function listedTemplate(
  row: TemplateRow,
  around: TemplateAround,
): Static<typeof schemas.ListedTemplate> {
  const { locales, ...summary } = row.summary
  return { ...basics(row), ...summary, ...around, locales: locales.map((locale) => ({ locale })) }
}

/** The Template record of the contract, with the texts of one version. */
export function templateRecord(
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

const basics = (row: TemplateRow) => ({
  id: row.id,
  project_id: row.project_id,
  name: row.name,
  description: row.description,
  status: row.status,
  version: row.version,
  published_version: row.published_version,
  tags: row.tags,
  created_at: row.created_at,
  updated_at: row.updated_at,
  published_at: row.published_at,
})
