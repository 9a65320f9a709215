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

export const TEMPLATE_STATUSES = ["draft", "published", "archived"] as const
export type TemplateStatus = (typeof TEMPLATE_STATUSES)[number]

export const VARIABLE_TYPES = [
  "string",
  "number",
  "boolean",
  "object",
  "array",
  "date",
  "url",
] as const

/** A declared variable. Without a value an optional one is its fallback, or empty text. */
export interface TemplateVariable {
  key: string
  type: (typeof VARIABLE_TYPES)[number]
  required: boolean
  fallback: unknown
  description: string | null
}

export interface EmailTexts {
  subject: string | null
  html: string | null
  text: string | null
  preheader: string | null
}

export interface PushTexts {
  title: string
  body: string
  image_url: string | null
  data: Record<string, string>
  url: string | null
}

export interface SmsTexts {
  body: string
}

export interface InAppTexts {
  title: string
  body: string | null
  action_url: string | null
  action_label: string | null
}

/** The Handlebars texts of a template, by channel. */
export interface ChannelTexts {
  email?: EmailTexts
  push?: PushTexts
  sms?: SmsTexts
  in_app?: InAppTexts
}

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
