import { eq } from "drizzle-orm"
import { ApiError, invalid } from "../core/errors"
import type { Secrets } from "../core/secrets"
import type { MessageWatchers } from "../events/message-watchers"
import { LEASED, READY } from "../jobs/work-item"
import { allowanceOf, refuseFrozen } from "../messages/accept"
import { sealContent } from "../messages/sealed-contents"
import { AUTH_SOURCE, isOpen } from "../messages/status-changes"
import { messages } from "../messages/tables"
import { newText } from "../sms/prepare"
import { expectedSender, firstAllowing, limitedCountry, smsRouting } from "../sms/sms-routing"
import type { Reader } from "../store/store"
import { requireRoomFor } from "../tenancy/quotas"
import { languageOf } from "./default-templates"
import type { AuthEnvironment } from "./environments"
import { MASK } from "./mail-variables"
import type { MailLanguage } from "./mail-words"
import { type ReadyMessage, readyMessage, senderCaller } from "./sending"

export interface AuthTextParts {
  secrets: Secrets
  store: { read: Reader }
  watching: Pick<MessageWatchers, "watch">
}

export interface CodeText {
  /** In E.164. */
  to: string
  code: string
  locale?: string | null
  ends_in_seconds: number
}

/** What became of the first attempt: `open` while it runs, and where another one follows. */
export type FirstAttempt = "sent" | "refused" | "open"

/** The first attempt is waited for so long. */
const WAITED_MS = 5000

/** Texts with codes for the end users of a project: as mails, by its providers of texts (contract 41, 50). */
export class AuthTexts {
  readonly #secrets: Secrets
  readonly #store: { read: Reader }
  readonly #watching: Pick<MessageWatchers, "watch">

  constructor({ secrets, store, watching }: AuthTextParts) {
    this.#secrets = secrets
    this.#store = store
    this.#watching = watching
  }

  /**
   * Throws what a text to this number would be refused with: 503 `sms_not_configured`, 422 `validation_error` with the
   * reason `country_not_allowed`, 402 and 403. Call it before an account is looked for. Without a number: what every
   * text would be refused with.
   */
  async requireTexts(environment: AuthEnvironment, to?: string): Promise<void> {
    await this.#routed(environment, to)
  }

  /** Throws as `requireTexts`. Nothing is accepted yet. */
  async prepare(environment: AuthEnvironment, text: CodeText): Promise<ReadyMessage> {
    const { to, code, ends_in_seconds } = text
    const { caller, routes, first } = await this.#routed(environment, to)
    const { account_id, project_id, project_settings } = caller
    const locale = text.locale ?? project_settings.locale
    const name = project_settings.branding.name ?? environment.application.name
    const bodyWith = (shown: string) => bodyOf(environment, languageOf(locale), name, shown)
    const whole = { body: bodyWith(code) }
    const message = newText({
      ...{ account_id, project_id, to, ...whole, stream: "auth", source: AUTH_SOURCE },
      ...{ api_key_id: null, sandbox: project_settings.sandbox, scheduled_at: null },
      ...{ subscriber_id: null, category: null, template_id: null },
      from: expectedSender(first, to),
      envelope: { lasts_seconds: ends_in_seconds },
      country: limitedCountry(routes, to),
    })
    const content = sealContent(this.#secrets, message.id, whole, { body: bodyWith(MASK) })
    return readyMessage(caller, { ...message, content })
  }

  async #routed(environment: AuthEnvironment, to: string | undefined) {
    const db = this.#store.read
    const caller = await senderCaller(db, environment)
    const { project_id, project_settings } = caller
    const { sandbox } = project_settings
    const routes = await smsRouting(db, { project_id, sandbox }).catch(unconfigured)
    const first = to === undefined ? routes[0] : firstAllowing(routes, to)
    if (!first) return notAllowed()
    await refuseFrozen(db, caller, "sms", 1)
    if (!sandbox) await requireRoomFor(db, allowanceOf(caller, "sms"), 1)
    return { caller, routes, first }
  }

  /** Resolves with the end of the first attempt of an accepted text, or after 5 seconds. */
  waitForFirstAttempt(
    { project_id }: Pick<AuthEnvironment, "project_id">,
    message_id: string,
  ): Promise<FirstAttempt> {
    return new Promise((resolve, reject) => {
      const end = (answer: FirstAttempt) => {
        clearTimeout(timer)
        unwatch()
        resolve(answer)
      }
      const look = async (last: boolean) => {
        const found = await this.#attemptOf(message_id)
        if (found || last) end(found ?? "open")
      }
      const timer = setTimeout(() => look(true).catch(reject), WAITED_MS)
      const unwatch = this.#watching.watch(project_id, (frames) => {
        if (frames.some((frame) => frame.includes(message_id))) look(false).catch(reject)
      })
      look(false).catch(reject)
    })
  }

  /** Undefined while the first attempt has not ended. */
  async #attemptOf(id: string): Promise<FirstAttempt | undefined> {
    const { status, state, attempt } = messages
    const [row] = await this.#store.read
      .select({ status, state, attempt })
      .from(messages)
      .where(eq(messages.id, id))
    if (!row) return "open"
    if (!isOpen(row.status)) return GOOD.has(row.status) ? "sent" : "refused"
    const is_first = row.state === LEASED || (row.state === READY && row.attempt === 0)
    return is_first ? undefined : "open"
  }
}

const GOOD: ReadonlySet<string> = new Set(["sent", "delivered"])

/** What sends of a project answer with 400 is 503 here: the person that signs in cannot mend it. */
function unconfigured(error: unknown): never {
  if (!(error instanceof ApiError) || error.code !== "sms_not_configured") throw error
  throw new ApiError(error.code, error.message, error.details, { status: 503 })
}

function notAllowed(): never {
  const reason = "country_not_allowed"
  const hint = "Codes are not sent to numbers of this country."
  throw invalid("phone_number", reason, hint, { field: "phone_number", reason })
}

const WORDS: Record<MailLanguage, (code: string, name: string) => string> = {
  en: (code, name) => `${code} is your code for ${name}.`,
  de: (code, name) => `${code} ist Ihr Code für ${name}.`,
  fr: (code, name) => `${code} est votre code pour ${name}.`,
  es: (code, name) => `${code} es su clave para ${name}.`,
  ar: (code, name) => `${code} هو رمزك في ${name}.`,
}

/** The last line binds the code to the pages of an origin, so that phones fill it in there alone. */
function bodyOf(
  { settings: { android_sms_hash, sms_origin } }: AuthEnvironment,
  language: MailLanguage,
  name: string,
  code: string,
): string {
  const lines = [WORDS[language](code, name)]
  if (android_sms_hash) lines.push(android_sms_hash)
  if (sms_origin) lines.push("", `@${sms_origin} #${code}`)
  return lines.join("\n")
}
