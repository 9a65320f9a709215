import { fail } from "../core/errors"
import type { Caller } from "../identity/caller"
import { isLonger } from "../lib/text"
import { inZone } from "../messages/shared-texts"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import { templateSubscriber } from "../subscribers/template-subscriber"
import { renderTexts, type TemplateRendering } from "../templates/rendering"
import type { KeyedSources } from "../templates/template-renderer"
import { keyed, type UsableTemplate, usableTemplate } from "../templates/usable-template"
import { LONGEST_BODY, type SendText } from "./sms-input"

interface RenderedText {
  body: string
  used?: UsableTemplate["template"]
}

/**
 * Renders the template of a text, or its own body where variables are given, in the language and the zone of
 * the subscriber that it goes to. Throws 404 `template_not_found`, 422 `invalid_template` or
 * `template_render_failed`.
 */
export async function renderText(
  templates: TemplateRendering,
  { project_id, project_settings }: Pick<Caller, "project_id" | "project_settings">,
  { template, variables, body }: Pick<SendText, "template" | "variables" | "body">,
  subscriber: SubscriberRow | null,
): Promise<RenderedText> {
  if (template === null && variables === null) return { body }
  const locale = subscriber?.locale ?? undefined
  const zone = subscriber?.timezone ?? project_settings.timezone
  const render = async (sources: KeyedSources) => {
    const { texts } = await renderTexts(
      templates,
      project_id,
      inZone(sources, zone),
      variables ?? {},
      {},
      subscriber && templateSubscriber(subscriber),
    )
    return requireBody(texts.body)
  }
  if (template === null) {
    return { body: await render(inlineText(body, locale ?? project_settings.locale)) }
  }
  const wanted = { template, channel: "sms" as const, locale }
  const usable = await usableTemplate(templates.read, project_id, wanted)
  return { body: await render(usable), used: usable.template }
}

/** The body of a text, as that of a template that has no name. */
export const inlineText = (source: string, locale = "en"): KeyedSources =>
  keyed({
    texts: [{ field: "body", part: "body", mode: "text", source }],
    ...{ layouts: [], partials: {}, variables: [], locale, timezone: "UTC" },
  })

/** What every text has, looked at after it was rendered. Throws 422 `template_render_failed`. */
export function requireBody(body = ""): string {
  const reason = body.trim() === "" ? "empty" : isLonger(body, LONGEST_BODY) ? "too_long" : null
  if (reason === null) return body
  const message = `The rendered text must have 1 to ${LONGEST_BODY} characters.`
  return fail("template_render_failed", message, { missing: [], reason, field: "body" })
}
