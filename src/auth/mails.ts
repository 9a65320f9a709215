import { ApiError, fail } from "../core/errors"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { isReachable, maySendFrom, newEmail, rulesFor, type SendRules } from "../emails/prepare"
import { requireContent } from "../emails/render-email"
import type { Caller } from "../identity/caller"
import type { Mailbox } from "../lib/address"
import { domainOf, MAILBOX_DOMAIN } from "../lib/address"
import { type Color, contrast, parseColor } from "../lib/color"
import { isLocale } from "../lib/locale"
import { allowanceOf, refuseFrozen } from "../messages/accept"
import { sealContent } from "../messages/sealed-contents"
import { inZone } from "../messages/shared-texts"
import { AUTH_SOURCE } from "../messages/status-changes"
import { renderTexts } from "../templates/rendering"
import type { KeyedSources } from "../templates/template-renderer"
import { usableTemplate } from "../templates/usable-template"
import { requireRoomFor } from "../tenancy/quotas"
import { defaultSources } from "./default-templates"
import type { MailType } from "./environment-settings"
import type { AuthEnvironment } from "./environments"
import { MAIL_VARIABLES, MASK, SECRET_VARIABLES } from "./mail-variables"
import { type ReadyMessage, readyMessage, senderCaller } from "./sending"

export interface AuthMailParts {
  secrets: Secrets
  rules: SendRules
}

export interface AuthLetter {
  type: MailType
  to: { email: string; name?: string | null; locale?: string | null }
  /** Of MAIL_VARIABLES; common ones are added. `time` is ISO 8601. */
  variables: Record<string, string | null | undefined>
  /** How long its code or link works. */
  ends_in_seconds?: number
}

/**
 * Mail for the end users of a project, with codes and links that open accounts. It takes the way of all mail as stream
 * `auth`. Its content waits sealed; what reads show, and what stays, has them masked (contract 52, section 4).
 */
export class AuthMail {
  readonly #secrets: Secrets
  readonly #rules: SendRules

  constructor({ secrets, rules }: AuthMailParts) {
    this.#secrets = secrets
    this.#rules = rules
  }

  /**
   * Throws what a mail of this environment would be refused with, for any recipient: 503 `email_not_configured`, 402
   * where the quota of the month is used up, 403 for a frozen account. Call it before an account is looked for, so that
   * its answer tells nothing about one.
   */
  async requireSender(environment: AuthEnvironment, to?: string): Promise<Mailbox> {
    return (await this.#sending(environment, to)).from
  }

  /** Renders a mail. Throws as `requireSender`. Nothing is accepted yet. */
  async prepare(environment: AuthEnvironment, letter: AuthLetter): Promise<ReadyMessage> {
    const { type, to, ends_in_seconds } = letter
    const { caller, from } = await this.#sending(environment, to.email)
    const { account_id, project_id, project_settings } = caller
    const { sandbox } = project_settings
    const { used, real, shown } = await this.#render(environment, caller, letter)
    const masked = { html: shown.html, text: shown.text, headers: HEADERS }
    const message = newEmail({
      ...{ account_id, project_id, sandbox, from, reply_to: [] },
      to: { email: to.email, name: to.name ?? null },
      subject: shown.subject,
      content: masked,
      stream: "auth",
      source: AUTH_SOURCE,
      tags: [type],
      template_id: used?.id ?? null,
      kind: {
        ...(used && { template: used }),
        ...(ends_in_seconds !== undefined && { lasts_seconds: ends_in_seconds }),
      },
    })
    const whole = { ...real, headers: HEADERS }
    const content = sealContent(this.#secrets, message.id, whole, masked)
    return readyMessage(caller, { ...message, content })
  }

  async #sending(environment: AuthEnvironment, to: string | undefined) {
    const { read } = this.#rules
    const caller = await senderCaller(read, environment)
    const { project_id, project_settings } = caller
    const { sandbox, default_from } = project_settings
    await refuseFrozen(read, caller, "email", 1)
    if (!sandbox) await requireRoomFor(read, allowanceOf(caller, "email"), 1)
    const rules = await rulesFor(this.#rules, project_id, sandbox)
    const sink = rules.to_mailbox ? { email: `auth@${MAILBOX_DOMAIN}`, name: null } : null
    const is_reachable = to === undefined || isReachable(to, rules)
    for (const from of is_reachable ? [environment.settings.sender, default_from, sink] : [])
      if (from && (await maySendFrom(domainOf(from.email), caller, rules))) return { caller, from }
    return fail("email_not_configured", NO_SENDER)
  }

  /** In the person's language, twice: as it is, and as it is shown. */
  async #render(environment: AuthEnvironment, caller: Caller, letter: AuthLetter) {
    const { project_settings } = caller
    const { type, to } = letter
    const locale = to.locale && isLocale(to.locale) ? to.locale : project_settings.locale
    const variables = variablesOf(environment, caller, letter, locale)
    const own = environment.settings.templates[type]
    if (own) {
      try {
        const usable = await usableTemplate(this.#rules.read, caller.project_id, {
          ...{ template: own, channel: "email" as const, locale },
        })
        const sources = inZone(usable, project_settings.timezone)
        return { used: usable.template, ...(await this.#twice(caller, sources, variables)) }
      } catch (error) {
        if (!(error instanceof ApiError) || error.status >= 500) throw error
        log.warn(BROKEN, { template: own, type, reason: error.message })
      }
    }
    const sources = defaultSources(type, locale, project_settings.timezone)
    return { used: undefined, ...(await this.#twice(caller, sources, variables)) }
  }

  async #twice({ project_id }: Caller, sources: KeyedSources, variables: Record<string, string>) {
    const masked = { ...variables }
    for (const key of SECRET_VARIABLES) if (variables[key]) masked[key] = MASK
    const [real, shown] = await Promise.all(
      [variables, masked].map(async (values) =>
        requireContent(
          (await renderTexts(this.#rules.templates, project_id, sources, values)).texts,
        ),
      ),
    )
    if (!real || !shown) throw new Error("a mail was rendered to nothing")
    return { real, shown }
  }
}

/** RFC 3834: no answering machine replies to it. */
const HEADERS = { "Auto-Submitted": "auto-generated" }

const NO_SENDER =
  "The application cannot send email: the project has no sender address in a verified domain. Set default_from of the project, or the sender of the environment."

const BROKEN = "the template of a sign-in mail cannot be used, so the default text is sent"

const WHITE: Color = [255, 255, 255]
const BLACK: Color = [0, 0, 0]
const USUAL_COLOR = "#1d4ed8"

/** All that the type is given, so that no variable is missing. */
function variablesOf(
  { application }: AuthEnvironment,
  { project_settings: { branding } }: Caller,
  { type, to, variables, ends_in_seconds }: AuthLetter,
  locale: string,
): Record<string, string> {
  const primary_color = branding.primary_color ?? USUAL_COLOR
  const color = parseColor(primary_color) ?? BLACK
  const given: AuthLetter["variables"] = {
    app_name: branding.name ?? application.name,
    logo_url: branding.logo_url ?? application.logo_url,
    primary_color,
    primary_text: contrast(color, WHITE) >= contrast(color, BLACK) ? "#ffffff" : "#000000",
    support_url: branding.support_url,
    user_name: to.name,
    email: to.email,
    expires_in: ends_in_seconds === undefined ? null : duration(ends_in_seconds, locale),
    ...variables,
  }
  return Object.fromEntries(MAIL_VARIABLES[type].map(({ key }) => [key, given[key] ?? ""]))
}

const UNITS = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
] as const

/** In words of the language, such as `10 minutes`. */
function duration(seconds: number, locale: string): string {
  const [unit, length] = UNITS.find(([, one]) => seconds % one === 0) ?? ["second" as const, 1]
  const style = { style: "unit", unit, unitDisplay: "long" } as const
  return new Intl.NumberFormat(locale, style).format(seconds / length)
}
