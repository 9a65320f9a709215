import { ApiError } from "../core/errors"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import { signingKeys } from "../domains/keys"
import type { Caller } from "../identity/caller"
import { comparable, domainOf, type Mailbox } from "../lib/address"
import type { ContentFinding } from "../lib/content-finding"
import type { MailContent } from "../lib/spam-content"
import { foreseen, type MessageDecision, REASONS } from "../messages/decided"
import { frozenRefusal } from "../reputation/gate"
import { suppressedAmong } from "../suppressions/look-up"
import { demandRoomFor } from "../tenancy/quotas"
import { fullRefusal } from "../tenancy/stored-share"
import { chosenTracking } from "../tracking/choice"
import { allowanceOf, storedShareOf } from "./accept"
import { compose } from "./compose-email"
import type { ContentChecks } from "./content-check-task"
import {
  findAudience,
  isBlocked,
  NO_AUDIENCE,
  namesAudience,
  type SendAudience,
} from "./email-audience"
import type { EmailReading } from "./emails"
import type { SendEmail } from "./fields"
import { UNTRACKED, whyWithout, withoutPage } from "./link-warnings"
import { authenticationChecks } from "./preflight-domain"
import { refuseSize, refuseUnsendable, rulesFor, type SendRules, senderOf, sizeOf } from "./prepare"
import { renderEmail } from "./render-email"
import { throwSuppressed } from "./suppressed"
import { textOfHtml } from "./text-of-html"

/** The checks of a preflight (contract 20, section 1.2), in the order of its answer. */
export const PREFLIGHT_CHECKS = [
  "sender",
  "domain",
  "suppression",
  "preference",
  "authentication",
  "dkim_alignment",
  "spf_alignment",
  "dmarc",
  "rendering",
  "size",
  "links",
  "accessibility",
  "spam_content",
  "unsubscribe_header",
] as const

type CheckName = (typeof PREFLIGHT_CHECKS)[number]

export const CHECK_OUTCOMES = ["pass", "warn", "fail"] as const

/** What one check says. `fail` is what accept would refuse. */
export interface PreflightCheck {
  name: CheckName
  outcome: (typeof CHECK_OUTCOMES)[number]
  detail: string
}

export interface PreflightParts extends EmailReading {
  rules: SendRules
  secrets: Secrets
}

/** Some mail programs show no more of an html body than this. */
const CLIPPED_BYTES = 102 * 1024

/** Base64 in lines of 76 characters (RFC 2045, 6.8), and the header of the part. */
const encodedSize = (bytes: number) => Math.ceil(bytes / 57) * 78 + 300

/**
 * Everything that accepting this email would check, and what its receivers will make of it. Nothing
 * is sent, counted, fetched or stored. Rejects only for trouble of this machine.
 */
export async function preflight(parts: PreflightParts, caller: Caller, email: SendEmail) {
  const report = new Report()
  const from = await report.ask("sender", async () => senderOf(email, caller))
  await report.ask("sender", () => checkAccount(parts, caller, email, report))
  const sender = from && (await checkSender(parts, caller, { email, from, report }))
  const audience = await checkPreference(parts, caller, email, report)
  if (isBlocked(audience)) report.pass("suppression", NOT_ASKED)
  else await report.ask("suppression", () => checkSuppression(parts, caller, email, report))
  const rendered = await report.ask("rendering", () =>
    renderEmail(parts.rules, caller, email, audience),
  )
  const { subject, html, text: own } = rendered ?? email
  const content = { subject, html, text: own }
  const whole = { ...email, ...content }
  if (rendered) await checkContent(parts, content, report)
  const size_bytes = await sizeOnWire(parts, caller, { email: whole, from })
  await report.ask("size", async () => checkSize(whole, size_bytes, report))
  for (const check of sender ?? []) report.add(check)
  const domain = from && domainOf(from.email)
  const address = await parts.rules.publicAddress(caller.project_id, domain ?? null)
  if (address === undefined && chosenTracking({ ...email, html: content.html }, caller)) {
    report.warn("links", [whyWithout(UNTRACKED)])
  }
  if (audience.is_endable) checkUnsubscribe(parts, email, report, address)
  else report.pass("unsubscribe_header", "A mail of a critical category needs none.")
  const text = content.text ?? (await textOfHtml(parts.workers, content.html ?? ""))
  return { ...report.result(), rendered: { ...content, text, size_bytes } }
}

/** Collects what the checks say. */
class Report {
  readonly #errors: { code: string; message: string; details: Record<string, unknown> }[] = []
  readonly #warnings: { code: CheckName; message: string }[] = []
  readonly #checks = new Map<CheckName, PreflightCheck>()

  /** The check fails where the work is refused as accept would refuse it. */
  async ask<Result>(name: CheckName, work: () => Promise<Result>): Promise<Result | undefined> {
    try {
      const result = await work()
      if (!this.#checks.has(name)) this.pass(name, PASSED[name] ?? "Nothing stands in the way.")
      return result
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const { code, message, details } = error
      this.#errors.push({ code, message, details: { ...details } })
      this.#checks.set(name, { name, outcome: "fail", detail: message })
      return undefined
    }
  }

  pass(name: CheckName, detail: string) {
    if (this.#checks.get(name)?.outcome === "fail") return
    this.#checks.set(name, { name, outcome: "pass", detail })
  }

  add({ name, outcome, detail }: PreflightCheck) {
    if (outcome === "warn") this.warn(name, [detail])
    else this.#checks.set(name, { name, outcome, detail })
  }

  /** Each detail is a warning; the check shows the first, and how many there are. */
  warn(name: CheckName, details: string[]) {
    const [first = "", ...rest] = details
    for (const message of details) this.#warnings.push({ code: name, message })
    const detail = rest.length === 0 ? first : `${first} ${rest.length} more are in the warnings.`
    if (this.#checks.get(name)?.outcome !== "fail") {
      this.#checks.set(name, { name, outcome: "warn", detail })
    }
  }

  result() {
    for (const name of PREFLIGHT_CHECKS) {
      if (!this.#checks.has(name)) this.warn(name, [needsMore(name)])
    }
    const checks = PREFLIGHT_CHECKS.flatMap((name) => this.#checks.get(name) ?? [])
    return { ok: this.#errors.length === 0, errors: this.#errors, warnings: this.#warnings, checks }
  }
}

/** Why a check could not look: what it needs was refused already. */
const needsMore = (name: CheckName): string =>
  OF_CONTENT.has(name)
    ? "The check needs the rendered mail. Mend first what the check rendering names."
    : "The check needs a sender. Give `from`, or set default_from of the project."

/** Checks that look at nothing but subject, html and text. */
const OF_CONTENT: ReadonlySet<CheckName> = new Set<CheckName>([
  "rendering",
  "links",
  "accessibility",
  "spam_content",
])

const PASSED: Partial<Record<CheckName, string>> = {
  sender: "The mail has a sender.",
  domain: "The project may send from this domain.",
  suppression: "No recipient is suppressed.",
  preference: "The recipient may get this email.",
  size: "The message is below every limit.",
}

/** What the project may store, the quota of the month and the account's sending status: no other check stands for them. */
async function checkAccount(
  { store }: PreflightParts,
  caller: Caller,
  { cc, bcc }: SendEmail,
  report: Report,
) {
  const full = await fullRefusal(store.read, storedShareOf(caller, caller.project_id))
  if (full) throw full
  if (caller.project_settings.sandbox) return
  await demandRoomFor(store.read, allowanceOf(caller), 1 + cc.length + bcc.length)
  const frozen = frozenRefusal(caller)
  if (frozen) throw frozen
  if (caller.sending_status !== "throttled") return
  const reason = caller.sending_status_reason
  report.warn("sender", [`The account is throttled (${reason}): a share of its sends is rejected.`])
}

async function checkSender(
  { store, rules }: PreflightParts,
  caller: Caller,
  { email, from, report }: { email: SendEmail; from: Mailbox; report: Report },
) {
  const { project_id, project_settings } = caller
  const domain = domainOf(from.email)
  const recipients = [email.to, ...email.cc, ...email.bcc]
  let sendable = rules
  await report.ask("domain", async () => {
    sendable = await rulesFor(rules, project_id, project_settings.sandbox)
    await refuseUnsendable(caller, domain, recipients, sendable)
  })
  return authenticationChecks({ db: store.read, project_id, domain, rules: sendable })
}

const NOT_ASKED = "The subscriber is blocked, so suppressions are not asked."

async function checkSuppression(
  { store }: PreflightParts,
  { project_id }: Caller,
  { to, cc, bcc, category }: SendEmail,
  report: Report,
) {
  const copies = [...cc, ...bcc].map(({ email }) => comparable(email))
  const address = comparable(to.email)
  const found = await suppressedAmong(
    store.read,
    project_id,
    [address, ...copies],
    category === null ? {} : { category },
  )
  const left_out = [...new Set(copies)].filter((one) => found.has(one))
  if (left_out.length > 0) {
    const detail = (one: string) => `${one} is suppressed and will be left out of the mail.`
    report.warn("suppression", left_out.map(detail))
  }
  const row = found.get(address)
  if (row) throwSuppressed(row)
}

/** A message that its recipient does not want is accepted and fails, so it is a warning. */
async function checkPreference(
  { store, rules }: PreflightParts,
  { project_id, project_settings }: Caller,
  email: SendEmail,
  report: Report,
): Promise<SendAudience> {
  if (!namesAudience(email)) {
    report.pass("preference", "The email names neither a subscriber nor a category.")
    return NO_AUDIENCE
  }
  const found = await report.ask("preference", () =>
    findAudience(rules.audience, project_id, email),
  )
  if (found === undefined) return NO_AUDIENCE
  const decision = await foreseen(store.read, project_settings, {
    ...{ project_id, channel: "email", stream: "transactional", envelope: null },
    recipient: comparable(email.to.email),
    subscriber_id: found.subscriber?.id ?? null,
    category: email.category,
    scheduled_at: email.scheduled_at ?? null,
  })
  const warning = decision && warningOf(decision)
  if (warning) report.warn("preference", [warning])
  return found
}

function warningOf({ is_allowed, reason, deferred_until }: MessageDecision): string | undefined {
  if (deferred_until) return `${REASONS.quiet_hours} The email will be sent at ${deferred_until}.`
  if (is_allowed || reason === "suppressed") return undefined
  return `${REASONS[reason ?? "preference"]} The email would be accepted and then fail.`
}

const CONTENT_DEADLINE_MS = 5_000

/** Looking at more would hold a thread for seconds, and no mail program shows that much. */
const MOST_LOOKED_AT_BYTES = 1024 * 1024

async function checkContent({ workers }: PreflightParts, content: MailContent, report: Report) {
  const size = sizeOf(content, [])
  if (size > MOST_LOOKED_AT_BYTES) {
    const detail = `Html and text have ${size} bytes. Content over ${MOST_LOOKED_AT_BYTES} bytes is not looked at.`
    for (const name of OF_CONTENT) report.warn(name, [detail])
    return
  }
  const options = { deadline_ms: CONTENT_DEADLINE_MS }
  const all = await workers.run<ContentChecks>("check-content", content, options)
  for (const [name, findings] of Object.entries(all) as [CheckName, ContentFinding[]][]) {
    if (findings.length === 0) report.pass(name, CONTENT_PASSED[name] ?? "Nothing was found.")
    else
      report.warn(
        name,
        findings.map(({ detail }) => detail),
      )
  }
}

const CONTENT_PASSED: Partial<Record<CheckName, string>> = {
  rendering: "The markup is whole, and common mail programs show all of it.",
  links: "Every link is whole and has https.",
  accessibility: "Language, alternative texts, contrast, headings and link texts are in order.",
  spam_content: "No word or form that filters count was found.",
}

/** Of the message with its headers and signature; a file that is named by a URL counts nothing. */
async function sizeOnWire(
  { store, secrets, workers }: PreflightParts,
  { project_id }: Caller,
  { email, from }: { email: SendEmail; from: Mailbox | undefined },
): Promise<number> {
  const { to, cc, reply_to, subject, html, text, headers } = email
  const domain = domainOf((from ?? to).email)
  const { raw } = await compose(workers, {
    message_id: newId(),
    domain,
    created_at: now(),
    ...{ from: from ?? to, to, cc, reply_to, subject, html, text, headers },
    attachments: [],
    dkim: await signingKeys(store.read, secrets, project_id, domain),
  })
  const files = email.attachments.flatMap((file) => ("bytes" in file ? file.bytes.length : []))
  return files.reduce((sum, bytes) => sum + encodedSize(bytes), raw.length)
}

async function checkSize(email: SendEmail, size_bytes: number, report: Report) {
  refuseSize(
    sizeOf(
      email,
      email.attachments.filter((file) => "bytes" in file),
    ),
  )
  const html_bytes = Buffer.byteLength(email.html ?? "")
  if (html_bytes <= CLIPPED_BYTES)
    return report.pass("size", `The message has ${size_bytes} bytes.`)
  const detail = `The html has ${html_bytes} bytes. Some mail programs show only the first ${CLIPPED_BYTES}.`
  return report.warn("size", [detail])
}

function checkUnsubscribe(
  { rules }: PreflightParts,
  { category }: SendEmail,
  report: Report,
  address: string | undefined,
) {
  const name = "unsubscribe_header"
  if (category === null) return report.pass(name, "A mail without a category needs none.")
  if (address === undefined) {
    return report.warn(name, [whyWithout(withoutPage(rules.unsubscribe.takes_mail))])
  }
  if (address.startsWith("https:")) {
    return report.pass(name, "The mail carries List-Unsubscribe with one click (RFC 8058).")
  }
  const detail = `${new URL(address).origin} is without TLS, so mail programs show no one-click button. Set base_url to an https URL.`
  return report.warn(name, [detail])
}
