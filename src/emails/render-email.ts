import type { UnsubscribeLinks } from "../consents/unsubscribe-links"
import { fail } from "../core/errors"
import type { PublicAddress } from "../domains/public-address"
import type { Caller } from "../identity/caller"
import { domainOf } from "../lib/address"
import { isLonger } from "../lib/text"
import { templateSubscriber } from "../subscribers/template-subscriber"
import { renderTexts, type TemplateRendering } from "../templates/rendering"
import type { KeyedSources } from "../templates/template-renderer"
import { keyed, type UsableTemplate, usableTemplate } from "../templates/usable-template"
import type { SendAudience } from "./email-audience"
import type { SendEmail } from "./fields"
import type { TemplateFields } from "./template-fields"

/** The texts of an email as they are sent, and the template that they come from. */
export interface RenderedEmail extends Pick<SendEmail, "subject" | "html" | "text"> {
  used?: UsableTemplate["template"]
}

/** Whether an email has to be rendered at all; most have not. */
export const needsRendering = ({ template, variables }: Partial<TemplateFields>): boolean =>
  template != null || variables != null

export interface RenderRules {
  templates: TemplateRendering
  /** By which recipients end the category of a mail. */
  unsubscribe: UnsubscribeLinks
  /** Where its links lead. */
  publicAddress: PublicAddress
}

/**
 * Renders the template of an email, or its own texts where variables are given, in the language and the
 * zone of the subscriber that it goes to. An email without either comes back as it is. Throws 404 `template_not_found`, 422 `invalid_template` or
 * `template_render_failed`.
 */
export async function renderEmail(
  rules: RenderRules,
  { project_id, project_settings }: Pick<Caller, "project_id" | "project_settings">,
  email: SendEmail,
  { subscriber, is_endable }: SendAudience,
): Promise<RenderedEmail> {
  const { template, variables, template_version: version } = email
  if (!needsRendering(email)) return textsOf(email)
  const from = email.from ?? project_settings.default_from
  const domain = from && domainOf(from.email)
  const address = await rules.publicAddress(project_id, domain)
  const pages = is_endable ? pagesOf(rules, project_id, email, address) : {}
  const locale = subscriber?.locale ?? undefined
  const render = async (sources: KeyedSources) => {
    const zone = subscriber?.timezone ?? project_settings.timezone
    const recipient = subscriber && templateSubscriber(subscriber)
    const { texts } = await renderTexts(
      rules.templates,
      project_id,
      inZone(sources, zone),
      variables ?? {},
      pages,
      recipient,
    )
    return demandContent(texts)
  }
  if (template == null) return render(inlineTexts(email, locale ?? project_settings.locale))
  const { read } = rules.templates
  const preview = version !== undefined
  const wanted = { template, channel: "email" as const, version, preview, locale }
  const usable = await usableTemplate(read, project_id, wanted)
  return { ...(await render(usable)), used: usable.template }
}

/** Dates are written as they are where the recipient is. */
const inZone = ({ key, sources }: KeyedSources, timezone: string): KeyedSources =>
  timezone === sources.timezone
    ? { key, sources }
    : { key: `${key} ${timezone}`, sources: { ...sources, timezone } }

const textsOf = ({ subject, html, text }: SendEmail) => ({ subject, html, text })

/** The pages of the recipient, where the mail has a category that they can end. */
function pagesOf(
  { unsubscribe }: RenderRules,
  project_id: string,
  { to, category }: SendEmail,
  address: string | undefined,
) {
  if (category === null) return {}
  const scope = { type: "category" as const, key: category }
  return unsubscribe.urlsOf(unsubscribe.tokenFor({ project_id, address: to.email, scope }), address)
}

const LOCALE = "en"
const TIMEZONE = "UTC"

/** The email's own texts, as those of a template that has no name. */
export function inlineTexts(
  { subject, html, text }: Pick<SendEmail, "subject" | "html" | "text">,
  locale = LOCALE,
): KeyedSources {
  const texts = Object.entries({ subject, html, text }).flatMap(([part, source]) => {
    const mode = part === "html" ? ("html" as const) : ("text" as const)
    return source === null ? [] : [{ field: part, part, mode, source }]
  })
  return keyed({
    texts,
    layouts: [],
    partials: {},
    variables: [],
    locale,
    timezone: TIMEZONE,
  })
}

const MAX_SUBJECT = 998

/** What every email has, looked at after its texts were rendered. */
export function demandContent({ subject = "", html, text, preheader }: Record<string, string>) {
  demandSubject(subject)
  if (!html && !text) {
    const message = "The rendered email has neither html nor text."
    fail("template_render_failed", message, { missing: [], reason: "empty", field: "html" })
  }
  return { subject, html: html ? withPreheader(html, preheader) : null, text: text || null }
}

/** Throws 422 `template_render_failed` for a subject that no email can have. */
export function demandSubject(subject: string): void {
  if (subject.trim() !== "" && !isLonger(subject, MAX_SUBJECT)) return
  const message = `The rendered subject must have 1 to ${MAX_SUBJECT} characters.`
  fail("template_render_failed", message, { missing: [], reason: "subject", field: "subject" })
}

const HIDDEN =
  "display:none;max-height:0;max-width:0;overflow:hidden;opacity:0;mso-hide:all;font-size:1px;line-height:1px"

/** The first text of the html is what mail programs show beside the subject. */
function withPreheader(html: string, preheader: string | undefined): string {
  if (!preheader) return html
  const shown = preheader.replace(/[&<>]/g, (one) => `&#${one.charCodeAt(0)};`)
  const line = `<div style="${HIDDEN}">${shown}</div>`
  const [body] = /<body\b[^>]*>/i.exec(html) ?? []
  return body === undefined ? line + html : html.replace(body, () => body + line)
}
