import type { ErrorCode } from "../core/errors"
import { type SharedContent, sharedTexts } from "../messages/contents"
import { inPlace, isLate, renderFor, renderRefusal } from "../messages/shared-texts"
import { type Message, wantedSince } from "../messages/status-changes"
import type { RecipientPages } from "../templates/rendering"
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
  const token = envelope?.unsubscribe
  const pages: RecipientPages = token === undefined ? {} : unsubscribe.urlsOf(token, address)
  const values = { ...found, subscriber, now: wantedSince(message), pages }
  try {
    const rendered = await renderFor(templates, inPlace(found, subscriber), values)
    const { html, text } = requireContent(rendered)
    return { html, text, headers: {} }
  } catch (error) {
    const refusal = renderRefusal(error)
    return { code: refusal.code, reason: refusal.message, is_late: isLate(refusal) }
  }
}

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
  const alone = subjectOf(inPlace(found, subscriber))
  const render = async () => {
    const rendered = await renderFor(templates, alone.subject, { ...found, subscriber, now })
    return rendered.subject ?? null
  }
  try {
    if (alone.is_personal) return await render()
    alone.rendered ??= render()
    return await alone.rendered
  } catch (error) {
    alone.rendered = undefined
    if (isLate(renderRefusal(error))) throw error // no mail leaves without its subject because the machine is busy
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
