import { ApiError, type ErrorCode } from "../core/errors"
import { type SharedContent, type SharedTexts, sharedTexts } from "../messages/contents"
import { type Message, wantedSince } from "../messages/status-changes"
import { oncePer } from "../store/cached"
import { wholeSubscriber } from "../subscribers/template-subscriber"
import { type RecipientPages, renderWith } from "../templates/rendering"
import type { KeyedSources } from "../templates/template-renderer"
import type { EmailContent } from "./filed-content"
import type { SendRules } from "./prepare"
import { requireContent } from "./render-email"

export type SharedRules = Pick<SendRules, "templates" | "unsubscribe" | "publicAddress">

/** Why a mail cannot be made, or that its texts are no longer stored. */
export interface NoBytes {
  reason: string
  code?: ErrorCode
  /** It took too long, which on a busy machine says nothing about the mail: another attempt may have more luck. */
  is_late?: boolean
}

/**
 * The content of a mail whose texts are stored once for many. The same every time: the subscriber, the
 * variables and the moment are those of before. `address` is where its links lead. Rejects with 503 while
 * too much waits for the threads.
 */
export async function renderShared(
  { templates, unsubscribe }: Pick<SharedRules, "templates" | "unsubscribe">,
  message: Pick<Message, "fan_out_id" | "envelope" | "scheduled_at" | "created_at">,
  { shared, subscriber }: SharedContent,
  address: string | undefined,
): Promise<EmailContent | NoBytes> {
  const { fan_out_id, envelope } = message
  const found =
    fan_out_id === null ? undefined : await sharedTexts(templates.read, fan_out_id, shared)
  if (!found) return { code: "internal_error", reason: "The texts of this email are not stored." }
  const { variables, project } = found
  const token = envelope?.unsubscribe
  const pages: RecipientPages = token === undefined ? {} : unsubscribe.urlsOf(token, address)
  const given = { subscriber: wholeSubscriber(subscriber), project, now: wantedSince(message) }
  const texts = inPlace(found, subscriber)
  try {
    const rendered = await renderWith(templates.renderer, texts, given, variables, pages)
    const { html, text } = requireContent(rendered.texts)
    return { html, text, headers: {} }
  } catch (error) {
    if (!(error instanceof ApiError) || error.code === "service_unavailable") throw error
    return { code: error.code, reason: error.message, is_late: isLate(error) }
  }
}

const isLate = ({ details }: ApiError): boolean =>
  "reason" in details && details.reason === "timeout"

export const isRendered = (made: EmailContent | NoBytes): made is EmailContent => "html" in made

/** The subjects by the names of the texts, where none of them says something else to each recipient. */
export async function commonSubjects(
  rules: Pick<SharedRules, "templates">,
  fan_out_id: string,
  names: Iterable<string>,
  now: string,
): Promise<Map<string, string | null> | undefined> {
  const subjects = new Map<string, string | null>()
  for (const name of names) {
    const found = await sharedTexts(rules.templates.read, fan_out_id, name)
    if (found && subjectOf(found.texts).is_personal) return undefined
    const content = { shared: name, subscriber: {} }
    subjects.set(name, await renderSubject(rules, fan_out_id, content, now))
  }
  return subjects
}

/** Null for one that cannot be rendered. Rejects where it takes too long, to be tried again. */
export async function renderSubject(
  { templates }: Pick<SharedRules, "templates">,
  fan_out_id: string,
  { shared, subscriber }: SharedContent,
  now: string,
): Promise<string | null> {
  const found = await sharedTexts(templates.read, fan_out_id, shared)
  if (!found) return null
  const { variables, project } = found
  const alone = subjectOf(inPlace(found, subscriber))
  const render = async () => {
    const rendered = await renderWith(
      templates.renderer,
      alone.subject,
      { subscriber: wholeSubscriber(subscriber), project, now },
      variables,
    )
    return rendered.texts.subject ?? null
  }
  try {
    if (alone.is_personal) return await render()
    alone.rendered ??= render()
    return await alone.rendered
  } catch (error) {
    alone.rendered = undefined
    if (!(error instanceof ApiError) || error.code === "service_unavailable") throw error
    if (isLate(error)) throw error // no mail leaves without its subject because the machine is busy
    return null
  }
}

interface SubjectTexts {
  subject: KeyedSources
  /** It says something else to each recipient. */
  is_personal: boolean
  rendered?: Promise<string | null> | undefined
}

const subjects = new WeakMap<object, SubjectTexts>()

function subjectOf({ key, sources }: KeyedSources): SubjectTexts {
  const known = subjects.get(sources)
  if (known) return known
  const texts = sources.texts.filter(({ part }) => part === "subject")
  const subject = { key: `${key} subject`, sources: { ...sources, texts } }
  const is_personal = texts.some(({ source }) => source.includes("{{"))
  const made: SubjectTexts = { subject, is_personal }
  subjects.set(sources, made)
  return made
}

const MOST_PLACES = 500

const placesOf = oncePer((_: KeyedSources["sources"]) => new Map<string, KeyedSources>())

/**
 * Numbers and dates are written as where the recipient is, whether or not there are texts in its language. The
 * zone counts only where a date may be written: each place is compiled anew.
 */
function inPlace(
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
