import { ApiError, fail } from "../core/errors"
import { now } from "../core/time"
import { oncePer } from "../store/cached"
import type { Reader } from "../store/store"
import type { AudienceMember } from "../subscribers/audience"
import {
  packedSubscriber,
  templateSubscriber,
  wholeSubscriber,
} from "../subscribers/template-subscriber"
import type { TemplateSources } from "../templates/render-templates-task"
import { type RecipientPages, renderWith, type TemplateRendering } from "../templates/rendering"
import type { TemplateContent } from "../templates/tables"
import type { KeyedSources } from "../templates/template-renderer"
import { included } from "../templates/template-sources"
import { findNamed } from "../templates/templates"
import { usableTemplate, usableTexts } from "../templates/usable-template"
import { findVersion } from "../templates/writing"
import {
  nameFor,
  namesOf,
  type SharedContent,
  type SharedLanguages,
  type SharedTexts,
  type SharedValues,
  sharedTexts,
} from "./contents"
import type { ContentQuery, NextRecipients } from "./planner"
import type { ChannelName, Envelope, MessageRefusal } from "./tables"

/** How one channel makes texts of what a publish says in it. */
export interface TextsOfContent {
  channel: ChannelName
  /** The texts of `content.<channel>`. */
  inline(content: unknown): KeyedSources
  /** Throws for texts that can be the message of no recipient. */
  require(sources: TemplateSources): void
}

/** The texts of a publish in one channel, in every language that they have (`email`, `email:de`). */
interface PublishTexts {
  texts: Map<string, TemplateSources>
  template: NonNullable<Envelope["template"]> | null
}

/**
 * The texts of a publish as they are now. Throws 404 `template_not_found`, and 422 `invalid_template` or
 * `template_render_failed` for what can be the message of no recipient.
 */
export async function publishTexts(
  templates: TemplateRendering,
  project_id: string,
  asked: ContentQuery,
  kind: TextsOfContent,
): Promise<PublishTexts> {
  try {
    const found = await textsOf(templates, project_id, asked, kind)
    for (const sources of found.texts.values()) kind.require(sources)
    return found
  } catch (error) {
    throw asked.content ? placedInContent(kind.channel, error) : error
  }
}

/** The same error with the field as the request names it: `content.email.subject`. */
function placedInContent(channel: ChannelName, error: unknown): unknown {
  if (!(error instanceof ApiError) || !("field" in error.details)) return error
  const place = `content.${channel}.`
  const { code, message, details } = error
  const is_named = message.startsWith(`${details.field}: `)
  const field = `${place}${details.field}`
  return new ApiError(code, is_named ? place + message : message, { ...details, field })
}

async function textsOf(
  templates: TemplateRendering,
  project_id: string,
  { template, content }: ContentQuery,
  { channel, inline }: TextsOfContent,
): Promise<PublishTexts> {
  if (template !== null) return textsOfTemplate(templates.read, project_id, template, channel)
  if (!content) {
    const message = `The publish has neither a template nor a content for ${channel}.`
    return fail("template_render_failed", message, { missing: [], reason: "empty" })
  }
  const keyed = inline(content)
  await requireSyntax(templates, project_id, keyed)
  return { texts: new Map([[channel, keyed.sources]]), template: null }
}

/** Values may be missing, because nobody is written to yet; a mistake in the texts is one for everybody. */
async function requireSyntax(
  { renderer }: TemplateRendering,
  project_id: string,
  keyed: KeyedSources,
) {
  const given = { subscriber: {}, project: { id: project_id, name: "" }, now: now() }
  try {
    await renderWith(renderer, keyed, given, {})
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "template_render_failed") throw error
  }
}

async function textsOfTemplate(
  db: Reader,
  project_id: string,
  asked: string,
  channel: ChannelName,
): Promise<PublishTexts> {
  const { template, sources } = await usableTemplate(db, project_id, { template: asked, channel })
  const row = await findNamed(db, project_id, template.id)
  const { content } = await findVersion(db, row, template.version)
  const whole = { ...content, ...template }
  const texts = new Map([[channel as string, sources]])
  // A base language before those that fall back to it: `de` before `de-AT`.
  const languages = [...(await languagesOf(db, project_id, whole))]
  for (const locale of languages.sort((one, other) => one.length - other.length)) {
    const other = await usableTexts(db, project_id, whole, { channel, locale })
    const known = { names: new Set(texts.keys()), usual: null }
    const fallback = texts.get(nameFor(known, channel, locale)) ?? sources
    if (says(other.sources) === says(fallback)) continue
    texts.set(`${channel}:${locale.toLowerCase()}`, other.sources)
  }
  return { texts, template }
}

/** Whether it may say something else to each recipient: it has Handlebars. */
export const isPersonal = ({ layouts, texts }: TemplateSources): boolean =>
  layouts.length > 0 || texts.some(({ source }) => source.includes("{{"))

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

export const contentFor = (
  languages: SharedLanguages,
  channel: ChannelName,
  member: AudienceMember,
): SharedContent => ({
  shared: nameFor(languages, channel, member.locale),
  subscriber: packedSubscriber(templateSubscriber(member)),
})

/** What one recipient is told: the same values make the same texts. */
interface RecipientValues extends Pick<SharedValues, "variables" | "project"> {
  subscriber: Record<string, unknown>
  /** In ISO 8601. */
  now: string
  pages?: RecipientPages
}

/** Renders texts for one recipient. Rejects with 503 while too much waits for the threads. */
export async function renderFor(
  { renderer }: Pick<TemplateRendering, "renderer">,
  texts: KeyedSources,
  { variables, project, subscriber, now, pages }: RecipientValues,
): Promise<Record<string, string>> {
  const given = { subscriber: wholeSubscriber(subscriber), project, now }
  return (await renderWith(renderer, texts, given, variables, pages)).texts
}

/** Texts that say the same to each recipient, by the names of their parts. */
export const plainTexts = ({ texts }: Pick<TemplateSources, "texts">): Record<string, string> =>
  Object.fromEntries(texts.map(({ part, source }) => [part, source]))

/**
 * The texts of the next recipients of a fan-out, or why there are none: by subscriber; where all of a language get the
 * same, by the name of their texts. `checked` may throw ApiError. Rejects where rendering takes too long, to be tried
 * again: no message is lost because the machine is busy.
 */
export async function renderAll<Texts>(
  templates: TemplateRendering,
  channel: ChannelName,
  { fan_out, languages, at, members }: NextRecipients,
  checked: (texts: Record<string, string>) => Texts,
): Promise<Map<string, Texts | MessageRefusal>> {
  const found = new Map<string, Texts | MessageRefusal>()
  const keep = async (name: string, texts: () => Promise<Record<string, string>>) =>
    found.set(name, await refusable(async () => checked(await texts())))
  let is_personal = false
  for (const name of namesOf(languages, channel)) {
    const shared = await sharedTexts(templates.read, fan_out.id, name)
    if (!shared) continue
    const { sources } = shared.texts
    if (isPersonal(sources)) is_personal = true
    else await keep(name, async () => plainTexts(sources))
  }
  if (!is_personal) return found
  const rendered = (await members()).map(async (member) => {
    const { shared, subscriber } = contentFor(languages, channel, member)
    const texts = await sharedTexts(templates.read, fan_out.id, shared)
    if (!texts || found.has(shared)) return
    const values = { ...texts, subscriber, now: at }
    await keep(member.id, () => renderFor(templates, inPlace(texts, subscriber), values))
  })
  await Promise.all(rendered)
  return found
}

async function refusable<Made>(make: () => Promise<Made>): Promise<Made | MessageRefusal> {
  try {
    return await make()
  } catch (error) {
    const refusal = renderRefusal(error)
    if (isLate(refusal)) throw error
    return { reason: refusal.code, text: refusal.message }
  }
}

/** Why texts cannot be rendered for a recipient. Throws what says nothing about the texts. */
export function renderRefusal(error: unknown): ApiError {
  if (error instanceof ApiError && error.code !== "service_unavailable") return error
  throw error
}

/** It took too long, which on a busy machine says nothing about the texts. */
export const isLate = ({ details }: ApiError): boolean =>
  "reason" in details && details.reason === "timeout"

const MOST_PLACES = 500

const placesOf = oncePer((_: KeyedSources["sources"]) => new Map<string, KeyedSources>())

/**
 * Numbers and dates are written as where the recipient is, whether or not there are texts in its language. The
 * zone counts only where a date may be written: each place is compiled anew.
 */
export function inPlace(
  { texts, ...usual }: SharedTexts,
  subscriber: Record<string, unknown>,
): KeyedSources {
  const { key, sources } = texts
  const locale = textOr(subscriber.locale ?? usual.locale, sources.locale)
  const zone = mayWriteDates(sources) ? (subscriber.timezone ?? usual.timezone) : undefined
  const timezone = textOr(zone, sources.timezone)
  if (locale === sources.locale && timezone === sources.timezone) return texts
  const place = `${locale} ${timezone}`
  const known = placesOf(sources)
  if (known.size > MOST_PLACES) known.clear()
  const found = known.get(place) ?? {
    key: `${key} ${place}`,
    sources: { ...sources, locale, timezone },
  }
  known.set(place, found)
  return found
}

const textOr = (value: unknown, fallback: string): string =>
  typeof value === "string" ? value : fallback

/** Whether the name of the helper stands in them. */
const mayWriteDates = oncePer((sources: KeyedSources["sources"]) =>
  JSON.stringify(sources).includes("date"),
)

/** Texts of one message: dates are written as they are where the recipient is. */
export const inZone = ({ key, sources }: KeyedSources, timezone: string): KeyedSources =>
  timezone === sources.timezone
    ? { key, sources }
    : { key: `${key} ${timezone}`, sources: { ...sources, timezone } }
