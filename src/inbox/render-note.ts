import { fail } from "../core/errors"
import type { Caller } from "../identity/caller"
import { isLonger } from "../lib/text"
import { inZone, isPersonal } from "../messages/shared-texts"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import { templateSubscriber } from "../subscribers/template-subscriber"
import { renderTexts, type TemplateRendering } from "../templates/rendering"
import type { KeyedSources } from "../templates/template-renderer"
import { keyed, type UsableTemplate, usableTemplate } from "../templates/usable-template"
import type { SendNote } from "./inbox-input"
import {
  BAD_LINK,
  isLink,
  LONGEST_LABEL,
  LONGEST_TEXT,
  LONGEST_TITLE,
  type NoteTexts,
  TEXT_PARTS,
} from "./note-fields"

interface RenderedNotes {
  /** In the order of the recipients. */
  texts: NoteTexts[]
  used?: UsableTemplate["template"]
}

/**
 * Renders the template of a message, or its own texts where variables are given, in the language and the zone of each
 * recipient. Throws 404 `template_not_found`, 422 `invalid_template`, `template_render_failed` or `invalid_url`.
 */
export async function renderNotes(
  templates: TemplateRendering,
  { project_id, project_settings }: Pick<Caller, "project_id" | "project_settings">,
  { template, variables, texts }: Pick<SendNote, "template" | "variables" | "texts">,
  recipients: SubscriberRow[],
): Promise<RenderedNotes> {
  if (template === null && variables === null) return { texts: recipients.map(() => texts) }
  let used: RenderedNotes["used"]
  const sourcesFor = async ({ locale, timezone }: SubscriberRow): Promise<KeyedSources> => {
    const zone = timezone ?? project_settings.timezone
    if (template === null) return inZone(inlineNote(texts, locale ?? project_settings.locale), zone)
    const wanted = { template, channel: "in_app" as const, locale: locale ?? undefined }
    const usable = await usableTemplate(templates.read, project_id, wanted)
    used = usable.template
    return inZone(usable, zone)
  }
  const render = async (sources: KeyedSources, subscriber: SubscriberRow) => {
    const given = templateSubscriber(subscriber)
    const of = renderTexts(templates, project_id, sources, variables ?? {}, {}, given)
    return requireNote((await of).texts)
  }
  const known = new Map<string, Promise<NoteTexts>>()
  const rendered = recipients.map(async (one) => {
    const sources = await sourcesFor(one)
    if (namesRecipient(sources)) return render(sources, one)
    const made = known.get(sources.key) ?? render(sources, one)
    known.set(sources.key, made)
    return made
  })
  return { texts: await Promise.all(rendered), ...(used && { used }) }
}

/** Whether it may say something else to each recipient of one language and zone. */
const namesRecipient = ({ sources }: KeyedSources): boolean =>
  isPersonal(sources) && JSON.stringify(sources).includes("subscriber")

/** The texts of a message, as those of a template that has no name. */
export const inlineNote = (texts: NoteTexts, locale = "en"): KeyedSources =>
  keyed({
    texts: TEXT_PARTS.flatMap((part) => {
      const source = texts[part]
      return source === null ? [] : [{ field: part, part, mode: "text" as const, source }]
    }),
    ...{ layouts: [], partials: {}, variables: [], locale, timezone: "UTC" },
  })

/** What every message has, looked at after it was rendered. Throws 422 `template_render_failed` or `invalid_url`. */
export function requireNote(rendered: Record<string, string>): NoteTexts {
  const action_url = lineOf(rendered, "action_url", Number.POSITIVE_INFINITY)
  if (action_url !== null && !isLink(action_url)) {
    fail("invalid_url", `action_url: ${BAD_LINK}`, { field: "action_url", reason: BAD_LINK })
  }
  const { body = "" } = rendered
  if (isLonger(body, LONGEST_TEXT)) refuse("body", "too_long", LONGEST_TEXT)
  const title = lineOf(rendered, "title", LONGEST_TITLE) ?? refuse("title", "empty", LONGEST_TITLE)
  const action_label = lineOf(rendered, "action_label", LONGEST_LABEL)
  return { title, body: body.trim() === "" ? null : body, action_url, action_label }
}

/** A text of one line; null where nothing came of it. */
function lineOf(rendered: Record<string, string>, part: string, most: number): string | null {
  const text = (rendered[part] ?? "").trim()
  if (isLonger(text, most)) refuse(part, "too_long", most)
  if (/[\p{Cc}\u2028\u2029]/u.test(text)) refuse(part, "invalid", most)
  return text === "" ? null : text
}

const refuse = (field: string, reason: string, most: number): never =>
  fail(
    "template_render_failed",
    `The rendered ${field} must have at most ${most} characters${HOW[reason] ?? ""}.`,
    {
      ...{ missing: [], reason, field },
    },
  )

const HOW: Record<string, string> = {
  empty: ", and at least one",
  invalid: ", without control characters",
}
