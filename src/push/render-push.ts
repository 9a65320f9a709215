import { fail } from "../core/errors"
import type { Caller } from "../identity/caller"
import { BAD_LINK, isLink } from "../inbox/note-fields"
import { isLonger } from "../lib/text"
import { inZone } from "../messages/shared-texts"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import { templateSubscriber } from "../subscribers/template-subscriber"
import { renderTexts, type TemplateRendering } from "../templates/rendering"
import type { KeyedSources } from "../templates/template-renderer"
import { keyed, type UsableTemplate, usableTemplate } from "../templates/usable-template"
import { RESERVED_DATA } from "./push-content"
import { LONGEST_BODY, LONGEST_TITLE, type PushTexts, sparse } from "./push-fields"
import type { SendPush } from "./push-input"

interface RenderedPush {
  texts: PushTexts
  used?: UsableTemplate["template"]
}

/**
 * Renders the template of a push message, or its own texts where variables are given, in the language and the zone of
 * the subscriber. Throws 404 `template_not_found`, 422 `invalid_template`, `template_render_failed` or `invalid_url`.
 */
export async function renderPush(
  templates: TemplateRendering,
  { project_id, project_settings }: Pick<Caller, "project_id" | "project_settings">,
  send: Pick<SendPush, "template" | "variables" | "texts" | "others">,
  subscriber: SubscriberRow | null,
): Promise<RenderedPush> {
  const { template, variables, texts, others } = send
  if (template === null && variables === null) return { texts }
  const locale = subscriber?.locale ?? undefined
  const zone = subscriber?.timezone ?? project_settings.timezone
  const render = async (sources: KeyedSources) => {
    const of = inZone(sources, zone)
    const given = subscriber && templateSubscriber(subscriber)
    const made = await renderTexts(templates, project_id, of, variables ?? {}, {}, given)
    return requirePush(made.texts, others.content_available)
  }
  if (template === null)
    return { texts: await render(inlinePush(texts, locale ?? project_settings.locale)) }
  const wanted = { template, channel: "push" as const, locale }
  const usable = await usableTemplate(templates.read, project_id, wanted)
  return { texts: await render(usable), used: usable.template }
}

const PARTS = ["title", "body", "image_url", "url"] as const

const DATA = "data."

/** The texts of a push message, as those of a template that has no name. */
export function inlinePush({ data = {}, ...texts }: PushTexts, locale = "en"): KeyedSources {
  const named = Object.entries(data).map(([name, text]) => [DATA + name, text] as const)
  const parts = [...Object.entries(texts), ...named]
  return keyed({
    texts: parts.map(([part, source]) => ({ field: part, part, mode: "text", source })),
    ...{ layouts: [], partials: {}, variables: [], locale, timezone: "UTC" },
  })
}

/** What every push message has, looked at after it was rendered. Throws 422 `template_render_failed` or `invalid_url`. */
export function requirePush(rendered: Record<string, string>, is_silent = false): PushTexts {
  const [title, body, image_url, url] = PARTS.map((part) => rendered[part]?.trim() || null)
  if (isLonger(title ?? "", LONGEST_TITLE)) refuse("title", "too_long")
  if (/[\p{Cc}\u2028\u2029]/u.test(title ?? "")) refuse("title", "invalid")
  if (isLonger(body ?? "", LONGEST_BODY)) refuse("body", "too_long")
  if (!title && !body && !is_silent) refuse("title", "empty")
  for (const [field, link] of Object.entries({ url, image_url })) {
    if (link == null || isLink(link)) continue
    fail("invalid_url", `${field}: ${BAD_LINK}`, { field, reason: BAD_LINK })
  }
  const data = Object.entries(rendered).flatMap(([part, text]) =>
    part.startsWith(DATA) ? [[part.slice(DATA.length), text] as const] : [],
  )
  const reserved = RESERVED_DATA.find((name) => data.some(([own]) => own === name))
  if (reserved) refuse(DATA + reserved, "reserved")
  const named = data.length > 0 ? Object.fromEntries(data) : null
  return sparse({ title, body, image_url, url, data: named })
}

const refuse = (field: string, reason: keyof typeof WHY): never =>
  fail("template_render_failed", `The rendered ${field} ${WHY[reason]}.`, {
    ...{ missing: [], reason, field },
  })

const WHY = {
  empty: "is empty, and so is the body",
  too_long: `is too long. A title has at most ${LONGEST_TITLE} characters, a body ${LONGEST_BODY}`,
  invalid: "has control characters",
  reserved: "has a reserved name",
}
