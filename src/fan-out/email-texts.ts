import { ApiError, fail } from "../core/errors"
import { now } from "../core/time"
import type { SendRules } from "../emails/prepare"
import { demandSubject, inlineTexts } from "../emails/render-email"
import type { Mailbox } from "../lib/address"
import { nameFor } from "../messages/contents"
import type { Envelope } from "../messages/tables"
import type { Reader } from "../store/store"
import type { TemplateSources } from "../templates/render-templates-task"
import { renderWith } from "../templates/rendering"
import type { TemplateContent } from "../templates/tables"
import type { KeyedSources } from "../templates/template-renderer"
import { included } from "../templates/template-sources"
import { findNamed } from "../templates/templates"
import { usableTemplate, usableTexts } from "../templates/usable-template"
import { findVersion } from "../templates/versions"

/** An email that a publish brings along instead of a template. */
export interface InlineEmail {
  subject: string
  html: string | null
  text: string | null
  from: Mailbox | null
}

/** The texts of an email in every language that they have, by `email` and `email:<language>`. */
export interface EmailTextsByLanguage {
  texts: Map<string, TemplateSources>
  template: NonNullable<Envelope["template"]> | null
  has_html: boolean
}

const EMAIL = "email" as const

/**
 * The texts as they are now. Throws 404 `template_not_found`, and 422 `invalid_template` or
 * `template_render_failed` for what can be the email of no recipient.
 */
export async function emailTexts(
  rules: Pick<SendRules, "templates">,
  project_id: string,
  asked: AskedTexts,
): Promise<EmailTextsByLanguage> {
  try {
    const found = await textsOf(rules, project_id, asked)
    for (const sources of found.texts.values()) demandPlainSubject(sources)
    return found
  } catch (error) {
    throw asked.content?.email ? placedInContent(error) : error
  }
}

const PLACE = "content.email."

/** The same error with the field as the request names it: `content.email.subject`. */
function placedInContent(error: unknown): unknown {
  if (!(error instanceof ApiError) || !("field" in error.details)) return error
  const field = `${PLACE}${error.details.field}`
  const { code, message, details } = error
  const is_named = message.startsWith(`${details.field}: `)
  return new ApiError(code, is_named ? PLACE + message : message, { ...details, field })
}

interface AskedTexts {
  template: string | null
  content: { email?: InlineEmail } | null
}

async function textsOf(
  rules: Pick<SendRules, "templates">,
  project_id: string,
  { template, content }: AskedTexts,
): Promise<EmailTextsByLanguage> {
  if (template !== null) return textsOfTemplate(rules.templates.read, project_id, template)
  if (!content?.email)
    return fail("template_render_failed", NOTHING, { missing: [], reason: "empty" })
  const keyed = inlineTexts(content.email)
  await demandSyntax(rules, project_id, keyed)
  return { ...demandParts(keyed.sources), texts: new Map([[EMAIL, keyed.sources]]), template: null }
}

const NOTHING = "The publish has neither a template nor a content for email."

/** Values may be missing, because nobody is written to yet; a mistake in the texts is one for everybody. */
async function demandSyntax(
  { templates }: Pick<SendRules, "templates">,
  project_id: string,
  keyed: KeyedSources,
) {
  const given = { subscriber: {}, project: { id: project_id, name: "" }, now: now() }
  try {
    await renderWith(templates.renderer, keyed, given, {})
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "template_render_failed") throw error
  }
}

async function textsOfTemplate(
  db: Reader,
  project_id: string,
  asked: string,
): Promise<EmailTextsByLanguage> {
  const { template, sources } = await usableTemplate(db, project_id, {
    template: asked,
    channel: EMAIL,
  })
  const row = await findNamed(db, project_id, template.id)
  const { content } = await findVersion(db, row, template.version)
  const whole = { ...content, ...template }
  const texts = new Map([[EMAIL as string, sources]])
  // A base language before those that fall back to it: `de` before `de-AT`.
  for (const locale of [...(await languagesOf(db, project_id, whole))].sort(byLength)) {
    const other = await usableTexts(db, project_id, whole, { channel: EMAIL, locale })
    const fallback = texts.get(
      nameFor({ names: new Set(texts.keys()), usual: null }, EMAIL, locale),
    )
    if (says(other.sources) !== says(fallback ?? sources))
      texts.set(`${EMAIL}:${locale.toLowerCase()}`, other.sources)
  }
  return { ...demandParts(sources), texts, template }
}

const byLength = (one: string, other: string): number => one.length - other.length

/** What it says, whichever language it is said to be in. */
const says = ({ texts, layouts, partials }: TemplateSources) =>
  JSON.stringify([texts.map(({ part, source }) => [part, source]), layouts, partials])

/** The languages of a template and of all that it includes. */
async function languagesOf(
  db: Reader,
  project_id: string,
  whole: TemplateContent & { id: string; name: string },
): Promise<Set<string>> {
  const around = await included(db, project_id, whole)
  const others = "missing" in around ? [] : [...around.layouts, ...around.partials.values()]
  const all = [whole, ...others.map(({ content }) => content)]
  return new Set(
    all.flatMap(({ locale, locales }) => [...Object.keys(locales), ...(locale ? [locale] : [])]),
  )
}

/** A subject that says the same to each recipient is known now. */
function demandPlainSubject({ texts }: TemplateSources): void {
  const subject = texts.find(({ part }) => part === "subject")?.source
  if (subject !== undefined && !subject.includes("{{")) demandSubject(subject)
}

function demandParts({ texts }: TemplateSources): { has_html: boolean } {
  const parts = new Set(texts.map(({ part }) => part))
  const has_html = parts.has("html")
  if (!parts.has("subject")) refuseWithout("subject")
  if (!has_html && !parts.has("text")) refuseWithout("html")
  return { has_html }
}

const refuseWithout = (field: string): never =>
  fail("template_render_failed", `The email has no ${field}.`, {
    missing: [],
    reason: "empty",
    field,
  })
