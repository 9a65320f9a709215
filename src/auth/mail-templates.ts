import { and, eq, isNull } from "drizzle-orm"
import { fail } from "../core/errors"
import { cached } from "../store/cached"
import type { Reader, Tx } from "../store/store"
import type { TemplateContent } from "../templates/tables"
import { included, inLocale } from "../templates/template-sources"
import { findNamed, forUpdate, type TemplateRow, type TemplateUses } from "../templates/templates"
import { invalidTemplate } from "../templates/validate-template"
import { findVersion } from "../templates/writing"
import type { MailType } from "./environment-settings"
import { MAIL_VARIABLES } from "./mail-variables"
import { applications, environments } from "./tables"

/**
 * The template that mails of a type take from now on, by its id or its name. It stays locked, so that it is neither
 * archived nor published without a variable meanwhile. Throws 404 `template_not_found`, 422 `invalid_template`.
 */
export async function requireMailTemplate(
  tx: Tx,
  project_id: string,
  type: MailType,
  id_or_name: string,
): Promise<string> {
  const { id } = await findNamed(tx, project_id, id_or_name)
  const row = await forUpdate(tx, project_id, id)
  if (row.published_version === null || row.status === "archived") {
    const reason = row.status === "archived" ? "archived" : "not_published"
    return fail("template_not_found", `The template ${row.name} is not published.`, { reason, id })
  }
  const { content } = await findVersion(tx, row, row.published_version)
  await requireVariables(tx, row, content, type)
  return id
}

/** Throws 422 `invalid_template` where a language of the mail lacks a variable without which it is of no use. */
async function requireVariables(
  db: Reader,
  { id, project_id, name }: Pick<TemplateRow, "id" | "project_id" | "name">,
  content: TemplateContent,
  type: MailType,
): Promise<void> {
  const found = await included(db, project_id, { ...content, id, name })
  const around =
    "missing" in found
      ? []
      : [...found.layouts, ...found.partials.values()].map((one) => one.content)
  for (const { key, required } of MAIL_VARIABLES[type]) {
    if (!required || around.some(({ detected_variables }) => detected_variables.includes(key)))
      continue
    const field = placeWithout(content, key)
    if (field === undefined) continue
    const message = `Mails of type ${type} use this template, so this text needs {{${key}}}.`
    throw invalidTemplate(field, { reason: "missing", message, line: null, column: null })
  }
}

/** The first text of an email that does not use a variable, in any language; undefined where all do. */
function placeWithout(content: TemplateContent, key: string): string | undefined {
  for (const locale of [null, ...Object.keys(content.locales)]) {
    const { html = null, text = null } = inLocale(content, locale).email ?? {}
    const prefix = locale === null ? "" : `locales.${locale}.`
    if (html === null && text === null) return `${prefix}html`
    if (html !== null && !isUsed(html, key)) return `${prefix}html`
    if (text !== null && !isUsed(text, key)) return `${prefix}text`
  }
  return undefined
}

const MOST_BETWEEN = 200

const isUsed = (source: string, key: string) =>
  new RegExp(`\\{\\{[^{}]{0,${MOST_BETWEEN}}\\b${key}\\b`).test(source)

interface MailUse {
  /** `Shop live`, for people. */
  environment: string
  type: MailType
}

/** The mails of a project that use each of its templates, by the template's id. */
type MailUses = Map<string, MailUse[]>

const remembered = cached<MailUses>({ tables: ["auth_environments", "applications"] })

const usesIn = async (db: Reader, project_id: string): Promise<MailUses> =>
  remembered(db, project_id, async () => {
    const rows = await db
      .select({ name: environments.name, settings: environments.settings, of: applications.name })
      .from(environments)
      .innerJoin(applications, eq(applications.id, environments.application_id))
      .where(and(eq(environments.project_id, project_id), isNull(applications.deleting_at)))
    const uses: MailUses = new Map()
    for (const { name, settings, of } of rows) {
      for (const [type, id] of Object.entries(settings.templates ?? {})) {
        const use = { environment: `${of} ${name}`, type: type as MailType }
        uses.set(id, [...(uses.get(id) ?? []), use])
      }
    }
    return uses
  })

/** What uses templates here: the mails of environments. */
export const templateUses: TemplateUses = {
  shown: async () => ({ workflows: [], broadcasts: [] }),
  environments: async (db, project_id, id) => {
    const uses = (await usesIn(db, project_id)).get(id) ?? []
    return [...new Set(uses.map(({ environment }) => environment))]
  },
  requireFit: async (db, project_id, id, content) => {
    for (const { type } of (await usesIn(db, project_id)).get(id) ?? [])
      await requireVariables(db, { id, project_id, name: "" }, content, type)
  },
}
