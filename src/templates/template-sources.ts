import { and, eq, inArray, ne } from "drizzle-orm"
import type { Reader } from "../store/store"
import { type ChannelTexts, type TemplateContent, templates, templateVersions } from "./tables"

export type ChannelKey = keyof ChannelTexts

/** What a text is escaped for. */
type TextMode = "html" | "text"

/** One Handlebars text of a template. */
export interface TemplateText {
  /** Its path in a request: `html`, `channels.sms.body`, `locales.de.subject`. */
  field: string
  /** Its name in its channel: `html`, `title`, `data.order`. */
  part: string
  mode: TextMode
  source: string
}

const FLAT = new Set(["subject", "html", "text"])

/** All texts of a template, those of other languages last. */
export function textsOf({
  channels,
  locales,
}: Pick<TemplateContent, "channels" | "locales">): TemplateText[] {
  const others = Object.entries(locales).flatMap(([locale, texts]) =>
    allTexts(texts, `locales.${locale}.`),
  )
  return [...allTexts(channels, ""), ...others]
}

const allTexts = (channels: ChannelTexts, prefix: string): TemplateText[] =>
  (Object.keys(channels) as ChannelKey[]).flatMap((channel) =>
    channelTexts(channels, channel, prefix),
  )

/** The texts of one channel; none where the template does not have it. */
export function channelTexts(
  channels: ChannelTexts,
  channel: ChannelKey,
  prefix = "",
): TemplateText[] {
  const texts: object = channels[channel] ?? {}
  return flattened(texts).map(([part, source]) => {
    const is_flat = channel === "email" && FLAT.has(part)
    const field = `${prefix}${is_flat ? part : `channels.${channel}.${part}`}`
    return { field, part, mode: part === "html" ? "html" : "text", source }
  })
}

/** The texts of an object, however deep, each with its path in it. */
export const flattened = (texts: object): [string, string][] =>
  Object.entries(texts).flatMap(([part, value]): [string, string][] => {
    if (typeof value === "string") return [[part, value]]
    if (typeof value !== "object" || value === null) return []
    return flattened(value).map(([name, text]) => [`${part}.${name}`, text])
  })

/** How deep templates may include each other; a layout is one level. */
const DEEPEST = 5

/** A published template that another one includes. */
interface IncludedTemplate {
  id: string
  name: string
  version: number
  content: TemplateContent
}

/** What a template is made of besides its own texts. */
export interface IncludedTemplates {
  /** The layout of the template, then the layout of that one, and so on. */
  layouts: IncludedTemplate[]
  partials: Map<string, IncludedTemplate>
}

/** Why a template cannot be put together. */
interface MissingTemplate {
  /** A name, or the id of a layout. */
  missing: string
  reason: "not_found" | "too_deep"
}

/** The template that includes: no other one may lead back to it. A new one has no id. */
interface Including extends Pick<TemplateContent, "layout_id" | "partials"> {
  id: string | null
  name: string
}

/** Reads all that a template includes, in the versions that are published. */
export async function included(
  db: Reader,
  project_id: string,
  top: Including,
): Promise<IncludedTemplates | MissingTemplate> {
  const layouts: IncludedTemplate[] = []
  for (let id = top.layout_id; id !== null; id = layouts.at(-1)?.content.layout_id ?? null) {
    if (layouts.length >= DEEPEST || id === top.id) return { missing: id, reason: "too_deep" }
    const [layout] = await published(db, project_id, { id })
    if (!layout) return { missing: id, reason: "not_found" }
    layouts.push(layout)
  }
  const partials = new Map<string, IncludedTemplate>()
  let level = [top, ...layouts.map((one) => one.content)].flatMap((one) => one.partials)
  for (let depth = 0; level.length > 0; depth++) {
    const [first = ""] = level
    if (depth >= DEEPEST || level.includes(top.name)) return { missing: first, reason: "too_deep" }
    const names = [...new Set(level)]
    const unread = names.filter((name) => !partials.has(name))
    for (const one of await published(db, project_id, { names: unread })) {
      partials.set(one.name, one)
    }
    const missing = names.find((name) => !partials.has(name))
    if (missing !== undefined) return { missing, reason: "not_found" }
    level = names.flatMap((name) => partials.get(name)?.content.partials ?? [])
  }
  return { layouts, partials }
}

const MOST_NAMES = 500

async function published(
  db: Reader,
  project_id: string,
  { id, names = [] }: { id?: string; names?: string[] },
): Promise<IncludedTemplate[]> {
  if (id === undefined && names.length === 0) return []
  const wanted =
    id === undefined ? inArray(templates.name, names.slice(0, MOST_NAMES)) : eq(templates.id, id)
  const version = and(
    eq(templateVersions.template_id, templates.id),
    eq(templateVersions.version, templates.published_version),
  )
  return db
    .select({
      id: templates.id,
      name: templates.name,
      version: templateVersions.version,
      content: templateVersions.content,
    })
    .from(templates)
    .innerJoin(templateVersions, version)
    .where(and(eq(templates.project_id, project_id), ne(templates.status, "archived"), wanted))
}

/**
 * The texts of a template in a language: exactly that one, its base language, else the template's own.
 * `html` and `text` of an email stay together, and other texts that a language lacks are the template's.
 */
export function inLocale(
  { channels, locale, locales }: Pick<TemplateContent, "channels" | "locale" | "locales">,
  wanted: string | null,
): ChannelTexts {
  const other = wanted === null ? undefined : nearestLocale(wanted, locale, locales)
  if (!other) return channels
  const both = { ...channels, ...other }
  const own = channels.email
  const email = other.email && {
    ...other.email,
    subject: other.email.subject ?? own?.subject ?? null,
    preheader: other.email.preheader ?? own?.preheader ?? null,
    ...(other.email.html === null && other.email.text === null
      ? { html: own?.html ?? null, text: own?.text ?? null }
      : {}),
  }
  return email ? { ...both, email } : both
}

/** `de-AT` finds `de-AT`, else `de`. The template's own language needs no other texts. */
function nearestLocale(
  wanted: string,
  own: string | null,
  locales: Record<string, ChannelTexts>,
): ChannelTexts | undefined {
  const known = new Map(Object.entries(locales).map(([tag, texts]) => [tag.toLowerCase(), texts]))
  for (
    let tag = wanted.toLowerCase();
    tag !== "";
    tag = tag.slice(0, Math.max(0, tag.lastIndexOf("-")))
  ) {
    const found = known.get(tag)
    if (found) return found
    if (tag === own?.toLowerCase()) return undefined
  }
  return undefined
}
