import { Type as t } from "@sinclair/typebox"
import type { UnsubscribeLinks } from "../consents/unsubscribe-links"
import { fail } from "../core/errors"
import type { PublicAddress } from "../domains/sending-domains"
import { FieldWarning } from "../http/field-schemas"
import type { Caller } from "../identity/caller"
import { domainOf } from "../lib/address"
import { text } from "../lib/record-fields"
import { isLonger } from "../lib/text"
import type { TemplateFields } from "../messages/send-body"
import type { SendAudience } from "../messages/send-fields"
import { inZone } from "../messages/shared-texts"
import type { NewMessage } from "../messages/tables"
import { templateSubscriber } from "../subscribers/template-subscriber"
import { renderTexts, type TemplateRendering } from "../templates/rendering"
import type { KeyedSources } from "../templates/template-renderer"
import { keyed, type UsableTemplate, usableTemplate } from "../templates/usable-template"
import { chosenTracking, type TrackingWish } from "../tracking/choice"
import type { SendEmail } from "./fields"
import { type EmailContent, type FiledContent, isFiled } from "./filed-content"

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
  if (!needsRendering(email)) return { subject: email.subject, html: email.html, text: email.text }
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
    return requireContent(texts)
  }
  if (template == null) return render(inlineTexts(email, locale ?? project_settings.locale))
  const { read } = rules.templates
  const preview = version !== undefined
  const wanted = { template, channel: "email" as const, version, preview, locale }
  const usable = await usableTemplate(read, project_id, wanted)
  return { ...(await render(usable)), used: usable.template }
}

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

/** The email's own texts, as those of a template that has no name. */
export function inlineTexts(
  { subject, html, text }: Pick<SendEmail, "subject" | "html" | "text">,
  locale = "en",
): KeyedSources {
  const texts = Object.entries({ subject, html, text }).flatMap(([part, source]) => {
    const mode = part === "html" ? ("html" as const) : ("text" as const)
    return source === null ? [] : [{ field: part, part, mode, source }]
  })
  const around = { layouts: [], partials: {}, variables: [] }
  return keyed({ texts, ...around, locale, timezone: "UTC" })
}

const MAX_SUBJECT = 998

/** What every email has, looked at after its texts were rendered. */
export function requireContent({ subject = "", html, text, preheader }: Record<string, string>) {
  requireSubject(subject)
  if (!html && !text) {
    const message = "The rendered email has neither html nor text."
    fail("template_render_failed", message, { missing: [], reason: "empty", field: "html" })
  }
  return { subject, html: html ? withPreheader(html, preheader) : null, text: text || null }
}

/** Throws 422 `template_render_failed` for a subject that no email can have. */
export function requireSubject(subject: string): void {
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

interface SendWarning {
  code: "no_public_address"
  message: string
}

const warning = {
  code: t.Literal("no_public_address"),
  message: text("The email is not tracked. …", "What the email lacks, and why."),
}

/** In `meta` of a send: what the email leaves without. Absent where there is nothing to tell. */
export const SendWarnings = t.Optional(t.Array(t.Object(warning, { title: "SendWarning" })))

/** The same of a batch, each with the place of its message. */
export const BatchWarnings = t.Optional(
  t.Array(
    t.Union([
      t.Object({ index: t.Integer(), ...warning }, { title: "BatchWarning" }),
      FieldWarning,
    ]),
  ),
)

const SET = "The public address of this server is not known. Set base_url on the server."

export const UNTRACKED = "Openings and clicks are not tracked."

/** What becomes of List-Unsubscribe where there is no page to lead to. */
export const withoutPage = (takes_mail: boolean): string =>
  takes_mail
    ? "Recipients can unsubscribe by mail only, not with one click."
    : "The email has no way to unsubscribe."

export const whyWithout = (...lacks: string[]): string => [...lacks, SET].join(" ")

type WarningRules = Pick<RenderRules, "unsubscribe" | "publicAddress">

/** What an accepted email leaves without, because links of this server would lead nowhere. */
export function linkWarnings(
  rules: WarningRules,
  caller: Caller,
  wish: TrackingWish,
  message: NewMessage,
): SendWarning[] | Promise<SendWarning[]> {
  const { envelope, content } = message
  const texts = content as EmailContent | FiledContent
  const html = isFiled(texts) ? texts.file : texts.html // large texts lie in a file, mostly html
  const wants_tracking = envelope?.track ?? (html && chosenTracking(wish, caller))
  const is_endable = envelope?.unsubscribe !== undefined
  if (!wants_tracking && !is_endable) return []
  return warningsOf(rules, message, { wants_tracking: !!wants_tracking, is_endable })
}

async function warningsOf(
  { unsubscribe, publicAddress }: WarningRules,
  { project_id, sender_domain }: NewMessage,
  { wants_tracking, is_endable }: { wants_tracking: boolean; is_endable: boolean },
): Promise<SendWarning[]> {
  if ((await publicAddress(project_id, sender_domain)) !== undefined) return []
  const lacks = [
    ...(wants_tracking ? [UNTRACKED] : []),
    ...(is_endable ? [withoutPage(unsubscribe.mail_host !== null)] : []),
  ]
  return [{ code: "no_public_address", message: whyWithout(...lacks) }]
}

/** An answer with its warnings, where there are any. */
export const warned = <Answer extends object>(answer: Answer, warnings: object[]) => ({
  ...answer,
  ...(warnings.length > 0 && { meta: { warnings: warnings as SendWarning[] } }),
})
