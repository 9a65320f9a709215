import { ApiError } from "../core/errors"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import { signingKeys } from "../domains/keys"
import { type SenderAuthentication, senderAuthentication } from "../domains/sending-domains"
import type { RecordPurpose } from "../domains/tables"
import type { Caller } from "../identity/caller"
import { comparable, domainOf, isBuiltIn, type Mailbox } from "../lib/address"
import { allowanceOf, storedShareOf } from "../messages/accept"
import { foreseen, REASONS } from "../messages/decided"
import { findAudience, isBlocked } from "../messages/send-fields"
import { throwSuppressed } from "../messages/suppressed"
import { refusalText } from "../providers/health"
import { frozenRefusal } from "../reputation/gate"
import { suppressedAmong } from "../suppressions/look-up"
import { requireRoomFor } from "../tenancy/quotas"
import { fullRefusal } from "../tenancy/stored-share"
import { chosenTracking } from "../tracking/choice"
import { compose } from "./compose-email"
import type { ContentChecks } from "./content-check-task"
import type { EmailReading } from "./emails"
import type { SendEmail } from "./fields"
import { refuseSize, refuseUnsendable, rulesFor, type SendRules, senderOf, sizeOf } from "./prepare"
import { renderEmail, UNTRACKED, whyWithout, withoutPage } from "./render-email"

export interface PreflightParts extends EmailReading {
  rules: SendRules
  secrets: Secrets
}

/** What came of work that accept may refuse, too, or its refusal. Rejects only for trouble of this machine. */
export async function tried<Result>(
  work: () => Result | Promise<Result>,
): Promise<Result | ApiError> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

const orUndefined = <Result>(found: Result | ApiError): Result | undefined =>
  found instanceof ApiError ? undefined : found

function requireResult<Result>(found: Result | ApiError): Result {
  if (found instanceof ApiError) throw found
  return found
}

/** What a check says: a text passes, and each text of a list is a warning. It throws as accept would. */
export type Answer = string | string[]

/** An email with what several checks need of it. Nothing of it is sent, counted, fetched or stored. */
export type Inquiry = Awaited<ReturnType<typeof inquire>>

export async function inquire(parts: PreflightParts, caller: Caller, email: SendEmail) {
  const { project_id, project_settings } = caller
  const from = email.from ?? project_settings.default_from ?? undefined
  const domain = from && domainOf(from.email)
  const rules = await tried(() => rulesFor(parts.rules, project_id, project_settings.sandbox))
  const audience = await tried(() => findAudience(parts.store.read, project_id, email))
  const known = orUndefined(audience) ?? { subscriber: null, is_endable: true }
  const rendered = await tried(() => renderEmail(parts.rules, caller, email, known))
  const { subject, html, text } = orUndefined(rendered) ?? email
  const whole = { ...email, subject, html, text }
  return {
    ...{ parts, caller, domain, rules, audience, known, rendered, email: whole },
    authentication: domain && (await senderAuthentication(parts.store.read, project_id, domain)),
    // A blocked subscriber is refused before anybody asks for suppressions.
    suppressed: isBlocked(known) ? undefined : await suppressedOf(parts, caller, email),
    findings: orUndefined(rendered) && (await contentFindings(parts, whole)),
    size_bytes: await sizeOnWire(parts, caller, whole, from),
    address: await parts.rules.publicAddress(project_id, domain ?? null),
  }
}

const CONTENT_DEADLINE_MS = 5_000
/** Looking at more would hold a thread for seconds, and no mail program shows that much. */
const MOST_LOOKED_AT_BYTES = 1024 * 1024

async function contentFindings(
  { workers }: PreflightParts,
  email: SendEmail,
): Promise<ContentChecks | "too_long"> {
  if (sizeOf(email, []) > MOST_LOOKED_AT_BYTES) return "too_long"
  const { subject, html, text } = email
  const options = { deadline_ms: CONTENT_DEADLINE_MS }
  return workers.run<ContentChecks>("check-content", { subject, html, text }, options)
}

/** Base64 in lines of 76 characters (RFC 2045, 6.8), and the header of the part. */
const encodedSize = (bytes: number) => Math.ceil(bytes / 57) * 78 + 300

/** Of the message with its headers and signature; a file that is named by a URL counts nothing. */
async function sizeOnWire(
  { store, secrets, workers }: PreflightParts,
  { project_id }: Caller,
  { to, cc, reply_to, subject, html, text, headers, attachments }: SendEmail,
  from: Mailbox = to,
): Promise<number> {
  const domain = domainOf(from.email)
  const { raw } = await compose(workers, {
    ...{ message_id: newId(), domain, created_at: now(), attachments: [] },
    ...{ from, to, cc, reply_to, subject, html, text, headers },
    dkim: await signingKeys(store.read, secrets, project_id, domain),
  })
  const files = attachments.flatMap((file) => ("bytes" in file ? file.bytes.length : []))
  return files.reduce((sum, bytes) => sum + encodedSize(bytes), raw.length)
}

export function sender({ email, caller }: Inquiry): Answer {
  senderOf(email, caller)
  return "The mail has a sender."
}

/** What the project may store, the quota of the month and the account's sending status: no other check stands for them. */
export async function account({ parts: { store }, caller, email }: Inquiry): Promise<Answer> {
  const full = await fullRefusal(store.read, storedShareOf(caller, caller.project_id))
  if (full) throw full
  if (caller.project_settings.sandbox) return "The mail stays in the sandbox."
  await requireRoomFor(
    store.read,
    allowanceOf(caller, "email"),
    1 + email.cc.length + email.bcc.length,
  )
  const frozen = frozenRefusal(caller)
  if (frozen) throw frozen
  if (caller.sending_status !== "throttled") return "The account may send."
  const reason = caller.sending_status_reason
  return [`The account is throttled (${reason}): a share of its sends is rejected.`]
}

const NEEDS_SENDER = ["The check needs a sender. Give `from`, or set default_from of the project."]

export async function domain({ caller, domain, email, rules }: Inquiry): Promise<Answer> {
  if (domain === undefined) return NEEDS_SENDER
  const recipients = [email.to, ...email.cc, ...email.bcc]
  await refuseUnsendable(caller, domain, recipients, requireResult(rules))
  return "The project may send from this domain."
}

const address = ({ email }: Mailbox) => comparable(email)

function suppressedOf(
  { store }: PreflightParts,
  { project_id }: Caller,
  { to, cc, bcc, category }: SendEmail,
) {
  const people = [to, ...cc, ...bcc].map(address)
  return suppressedAmong(store.read, { project_id, channel: "email" }, people, { category })
}

export function suppression({ email, suppressed }: Inquiry): Answer {
  if (!suppressed) return "The subscriber is blocked, so Belfry does not look at suppressions."
  const row = suppressed.get(address(email.to))
  if (row) throwSuppressed(row)
  return "No recipient is suppressed."
}

export function copies({ email, suppressed }: Inquiry): Answer {
  const named = new Set([...email.cc, ...email.bcc].map(address))
  const left_out = [...named].filter((one) => suppressed?.has(one))
  if (left_out.length === 0) return "No copy is left out."
  return left_out.map((one) => `${one} is suppressed and will be left out of the mail.`)
}

/** A message that its recipient does not want is accepted and fails, so it is a warning. */
export async function preference({ parts, caller, email, audience }: Inquiry): Promise<Answer> {
  if (email.subscriber_id == null && email.category === null)
    return "The email names neither a subscriber nor a category."
  const { project_id, project_settings } = caller
  const decision = await foreseen(parts.store.read, project_settings, {
    ...{ project_id, channel: "email", stream: "transactional", envelope: null },
    address: comparable(email.to.email),
    subscriber_id: requireResult(audience).subscriber?.id ?? null,
    category: email.category,
    scheduled_at: email.scheduled_at ?? null,
  })
  const { is_allowed = true, reason, deferred_until } = decision ?? {}
  if (deferred_until) return [`${REASONS.quiet_hours} The email will be sent at ${deferred_until}.`]
  if (is_allowed || reason === "suppressed") return "The recipient may get this email."
  return [`${REASONS[reason ?? "preference"]} The email would be accepted and then fail.`]
}

/** What receivers will make of the sender: by the records of its domain as the last check saw them. */
const authenticated =
  (check: (found: SenderAuthentication) => Answer) =>
  ({ domain, rules, authentication: found }: Inquiry): Answer => {
    if (domain === undefined) return NEEDS_SENDER
    if (orUndefined(rules)?.to_mailbox && isBuiltIn(domain)) {
      return "The embedded mailbox takes the mail. It asks for no records."
    }
    if (found && found.status === "verified") return check(found)
    return orUndefined(rules)?.sending_domains.has(domain)
      ? [`The operator lists ${domain} in sending_domains. Its records were not looked at.`]
      : [`${domain} is not verified, so its records are not known.`]
  }

const isThere = ({ records }: SenderAuthentication, purpose: RecordPurpose) =>
  records[purpose]?.status === "verified"

const lacks = (names: string[], domain: string) => [
  `The last check did not find the ${names.join(" and the ")} record of ${domain}. Run a check of the domain and mend it.`,
]

export const authentication = authenticated((found) => {
  const missing = (["dkim", "spf"] as const).filter((purpose) => !isThere(found, purpose))
  const names = missing.map((one) => one.toUpperCase())
  if (names.length > 0) return lacks(names, found.domain)
  return `The DKIM key and the SPF record of ${found.domain} are published.`
})

/** Whether the domain of the signature stands beside the From domain (RFC 7489, 3.1). */
export const dkimAlignment = authenticated((found) =>
  isThere(found, "dkim")
    ? `The signature is of ${found.domain}, as is From.`
    : [`Without its DKIM record, no signature speaks for ${found.domain}.`],
)

/** The same of the envelope sender as it is sent. */
export const spfAlignment = authenticated((found) => {
  const { reports_host: host, refusal, return_path } = found
  if (host && refusal) return [refusalText(host, refusal)]
  if (isThere(found, "return_path")) {
    return `Receivers send reports to ${return_path}, which is below the From domain.`
  }
  const instead =
    host === undefined
      ? "The envelope sender is the address of From."
      : `Receivers send reports to ${host}, so only DKIM is aligned.`
  return [`The MX record of ${return_path} is not there. ${instead}`]
})

const POLICIES: Record<string, string> = {
  none: "The policy is none: receivers report mail that fails, and take it.",
  quarantine: "The policy is quarantine: receivers put mail that fails into the spam folder.",
  reject: "The policy is reject: receivers refuse mail that fails.",
}

export const dmarc = authenticated(({ records, domain }) => {
  const record = records.dmarc?.found.find((value) => /^v=DMARC1\b/i.test(value))
  if (!record) return lacks(["DMARC"], domain)
  const word = /;\s*p\s*=\s*(\w+)/i.exec(record)?.[1]?.toLowerCase() ?? "none"
  const known = Object.hasOwn(POLICIES, word) ? POLICIES[word] : undefined
  return known ?? [`The policy ${JSON.stringify(word)} is not known to receivers.`]
})

const NEEDS_RENDERED =
  "The check needs the rendered mail. Mend first what the check rendering names."

/** One of the checks that look at nothing but subject, html and text. */
const ofContent =
  (name: keyof ContentChecks, passed: string) =>
  ({ email, findings }: Inquiry): Answer => {
    if (findings === undefined) return [NEEDS_RENDERED]
    if (findings === "too_long") {
      const size = `Html and text have ${sizeOf(email, [])} bytes.`
      return [`${size} Content over ${MOST_LOOKED_AT_BYTES} bytes is not looked at.`]
    }
    return findings[name].length === 0 ? passed : findings[name].map(({ detail }) => detail)
  }

const WHOLE = "The markup is whole, and common mail programs show all of it."

export function rendering(inquiry: Inquiry): Answer {
  requireResult(inquiry.rendered)
  return ofContent("rendering", WHOLE)(inquiry)
}

/** Some mail programs show no more of an html body than this. */
const CLIPPED_BYTES = 102 * 1024

export function size({ email, size_bytes }: Inquiry): Answer {
  const files = email.attachments.filter((file) => "bytes" in file)
  refuseSize(sizeOf(email, files))
  const html_bytes = Buffer.byteLength(email.html ?? "")
  if (html_bytes <= CLIPPED_BYTES) return `The message has ${size_bytes} bytes.`
  const shown = `Some mail programs show only the first ${CLIPPED_BYTES}.`
  return [`The html has ${html_bytes} bytes. ${shown}`]
}

export function links(inquiry: Inquiry): Answer {
  const { caller, email, address } = inquiry
  const found = ofContent("links", "Every link is whole and has https.")(inquiry)
  if (address !== undefined || !email.html || !chosenTracking(email, caller)) return found
  return [...(Array.isArray(found) ? found : []), whyWithout(UNTRACKED)]
}

export const accessibility = ofContent(
  "accessibility",
  "Language, alternative texts, contrast, headings and link texts are in order.",
)

export const spamContent = ofContent(
  "spam_content",
  "The mail has no word or form that spam filters look for.",
)

export function unsubscribeHeader({ parts, email, known, address }: Inquiry): Answer {
  if (!known.is_endable) return "A mail of a critical category needs none."
  if (email.category === null) return "A mail without a category needs none."
  if (address === undefined)
    return [whyWithout(withoutPage(parts.rules.unsubscribe.mail_host !== null))]
  if (address.startsWith("https:")) {
    return "The mail carries List-Unsubscribe with one click (RFC 8058)."
  }
  const why = "is without TLS, so mail programs show no one-click button."
  return [`${new URL(address).origin} ${why} Set base_url to an https URL.`]
}
