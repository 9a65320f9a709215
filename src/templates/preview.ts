import type { Static } from "@sinclair/typebox"
import type { Workers } from "../core/workers"
import { smsSegments } from "../lib/sms-segments"
import { textFromHtml } from "../lib/text-from-html"
import { GIVEN, type RenderedTexts, renderTexts, type TemplateRendering } from "./rendering"
import type { Rendered } from "./schemas"
import { afterChanges, type TemplateChanges } from "./template-input"
import { textsOf } from "./texts"
import {
  type UsableTemplate,
  usableTemplate,
  usableTexts,
  type WantedTexts,
} from "./usable-template"
import { validateTexts } from "./validate-template"

/** The addresses of the pages of nobody, which a preview shows. */
export interface PreviewPages {
  unsubscribe_url: string
  preferences_url: string
}

export interface PreviewParts extends TemplateRendering {
  workers: Workers
  pages: PreviewPages
}

type Preview = Static<typeof Rendered>

/** Renders a stored template. Throws 404, and 422 as `renderTexts` does. */
export async function preview(
  parts: PreviewParts,
  project_id: string,
  wanted: WantedTexts,
  variables: Record<string, unknown>,
): Promise<Preview> {
  const usable = await usableTemplate(parts.read, project_id, { ...wanted, preview: true })
  return toResponse(usable, variables, await render(parts, project_id, usable, variables))
}

export interface DraftToRender extends Pick<WantedTexts, "channel" | "locale"> {
  template: TemplateChanges
  variables: Record<string, unknown>
}

/** Renders texts that are not stored. Throws 422, also for their mistakes. */
export async function previewDraft(
  parts: PreviewParts,
  project_id: string,
  { template, variables, channel, locale }: DraftToRender,
): Promise<Preview> {
  const texts = afterChanges(template)
  const { names, partials } = await validateTexts(parts.workers, textsOf(texts))
  const own = {
    ...texts,
    ...{ id: null, name: template.name ?? "", version: 0 },
    partials: partials.map(({ name }) => name),
    detected_variables: names,
  }
  const usable = await usableTexts(parts.read, project_id, own, { channel, locale })
  const made = toResponse(usable, variables, await render(parts, project_id, usable, variables))
  return { ...made, template_id: null, version: null }
}

const render = (
  parts: PreviewParts,
  project_id: string,
  usable: UsableTemplate,
  variables: Record<string, unknown>,
) => renderTexts(parts, project_id, usable, variables, parts.pages)

function toResponse(
  { template, channel, names, sources }: UsableTemplate,
  variables: Record<string, unknown>,
  { texts, without_value }: RenderedTexts,
): Preview {
  const used = new Set([...names, ...sources.variables.map(({ key }) => key)].map(firstName))
  const { subject = null, html = null, preheader = null, title = null, body = null } = texts
  const text = texts.text ?? (html === null ? null : textFromHtml(html))
  const unknown = Object.keys(variables).filter((name) => !used.has(name) && !GIVEN.has(name))
  const size = [...Object.values(texts), ...(texts.text === undefined && text ? [text] : [])]
  return {
    template_id: template.id,
    version: template.version,
    channel,
    ...{ subject, html, text, preheader, title, body },
    missing_variables: without_value,
    unknown_variables: unknown.sort(),
    size_bytes: size.reduce((sum, one) => sum + Buffer.byteLength(one), 0),
    sms: channel === "sms" && body !== null ? smsSegments(body) : null,
  }
}

const firstName = (name: string) => name.split(".", 1)[0] ?? name
