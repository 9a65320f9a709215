import type { Static } from "@sinclair/typebox"
import type { Actor } from "../audit-log/tables"
import {
  id,
  index,
  int,
  json,
  primaryKey,
  ref,
  table,
  text,
  time,
  uniqueIndex,
} from "../store/columns"
import { life } from "../store/life"
import type { ChannelTextsRecord, TemplateStatus, VariableRecord } from "./schemas"

/** The Handlebars texts of a template, by channel. */
export type ChannelTexts = Static<typeof ChannelTextsRecord>
export type EmailTexts = NonNullable<ChannelTexts["email"]>

/** A declared variable. Without a value an optional one is its fallback, or empty text. */
export type TemplateVariable = Static<typeof VariableRecord>

/** What one version says. It never changes. */
export interface TemplateContent {
  channels: ChannelTexts
  variables: TemplateVariable[]
  /** Names that the texts use and that the data has to give, as they are written there. */
  detected_variables: string[]
  /** Names of the templates that the texts include. */
  partials: string[]
  layout_id: string | null
  locale: string | null
  /** What another language says otherwise. A channel that it does not name is the template's own. */
  locales: Record<string, ChannelTexts>
}

/** What lists show of the newest version. */
export interface TemplateSummary
  extends Pick<TemplateContent, "variables" | "detected_variables" | "layout_id" | "locale"> {
  subject: string | null
  locales: string[]
}

export const templates = table(
  "templates",
  {
    id: id(),
    account_id: ref().notNull(),
    project_id: ref().notNull(),
    name: text().notNull(),
    description: text(),
    status: text().$type<TemplateStatus>().notNull(),
    /** The newest version. */
    version: int().notNull(),
    published_version: int(),
    tags: json<string[]>().notNull(),
    summary: json<TemplateSummary>().notNull(),
    /** The searchable form of name and description. */
    search_key: text().notNull(),
    /** Each tag, channel and partial between line breaks, so that a part of the text finds one of them. */
    tag_key: text().notNull(),
    channel_key: text().notNull(),
    partial_key: text().notNull(),
    /** Of the newest version. */
    layout_id: ref(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
    published_at: time(),
  },
  (template) => [
    uniqueIndex("templates_by_name").on(template.project_id, template.name),
    index("templates_by_project").on(template.project_id, template.id),
  ],
)
life(templates, { owner: "project", ends: "never", counts: { name: "templates" } })

export const templateVersions = table(
  "template_versions",
  {
    template_id: ref().notNull(),
    version: int().notNull(),
    project_id: ref().notNull(),
    content: json<TemplateContent>().notNull(),
    note: text(),
    created_by: json<Actor>().notNull(),
    created_at: time().notNull(),
  },
  (row) => [
    primaryKey({ columns: [row.template_id, row.version] }),
    index("template_versions_by_project").on(row.project_id),
  ],
)
life(templateVersions, { owner: "project", ends: "with row", names: { template_id: "templates" } })
