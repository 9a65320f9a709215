import { returnedHeaders } from "./dsn"
import { isAddress } from "./ip-ranges"
import { fieldOf } from "./mail-text"
import { addressIn, fieldsOf, type ReportGroup, reportGroups } from "./report-fields"
import {
  firstOf,
  type HeaderLists,
  headersIn,
  partOfType,
  type SeenMail,
  textOfPart,
} from "./seen-mail"

/** Feedback of a mailbox provider about a message that was sent (RFC 5965). */
export interface FeedbackReport {
  /** In lower case: `abuse`, `fraud`, `virus`, `opt-out`, `not-spam`, `auth-failure`, `other` … */
  feedback_type: string
  /** The addresses that complained. Many providers hide them; then the list is empty. */
  original_recipients: string[]
  /** MAIL FROM of the message, without brackets. */
  original_mail_from: string | null
  /** Empty when the report returns nothing of the message. */
  original_headers: HeaderLists
  /** When the provider received the message: ISO 8601, UTC. */
  arrival_date: string | null
  source_ip: string | null
  user_agent: string | null
}

const FEEDBACK = new Set(["message/feedback-report"])

const MOST_RECIPIENTS = 100

/**
 * The report in a mail: RFC 5965, or the older form of Outlook.com (JMRP), which only forwards the
 * message with one more field. Undefined when the mail is none. Forged ones read alike. Never throws.
 */
export function readArf(mail: SeenMail): FeedbackReport | undefined {
  const part = partOfType(mail, FEEDBACK)
  const returned = returnedHeaders(mail) ?? headersIn("")
  if (!part) return fromForwarded(mail, returned)
  const group = reportGroups(textOfPart(part)).flat()
  const feedback_type = typeOf(group)
  if (feedback_type === undefined) return undefined
  return {
    feedback_type,
    original_recipients: recipientsOf(group, returned),
    original_mail_from: addressIn(fieldOf(group, "original-mail-from") ?? "") ?? null,
    original_headers: returned,
    arrival_date: instant(fieldOf(group, "arrival-date") ?? fieldOf(group, "received-date")),
    source_ip: sourceOf(fieldOf(group, "source-ip")),
    user_agent: fieldOf(group, "user-agent")?.slice(0, 200).toWellFormed() ?? null,
  }
}

/** Kinds of feedback that are no complaint: a praise, and the failure of a signature (RFC 6591). */
const HARMLESS = new Set(["not-spam", "auth-failure", "dmarc"])

/** Whether the recipient does not want the mail. */
export const isComplaint = ({ feedback_type }: FeedbackReport): boolean =>
  !HARMLESS.has(feedback_type)

/** A report on a message that failed DMARC (RFC 6591 and RFC 7489, 7.3). */
export const isFailureReport = ({ feedback_type }: FeedbackReport): boolean =>
  feedback_type === "auth-failure" || feedback_type === "dmarc"

/** `opt-out` has several spellings, and some providers say `unsubscribe`. */
function typeOf(group: ReportGroup): string | undefined {
  const given = (fieldOf(group, "feedback-type") ?? "").trim().toLowerCase()
  const [word] = /^[a-z][a-z-]{0,39}/.exec(given) ?? []
  return word !== undefined && /^(?:opt-?out|unsubscribe)/.test(word) ? "opt-out" : word
}

/** The report's own fields, then what providers put into the message (`Removal-Recipient` is AOL's). */
function recipientsOf(group: ReportGroup, returned: HeaderLists): string[] {
  const fields = [
    ...fieldsOf(group, "original-rcpt-to"),
    ...fieldsOf(group, "removal-recipient"),
    ...(returned["x-hmxmroriginalrecipient"] ?? []),
  ]
  const emails = fields.slice(0, MOST_RECIPIENTS).map(addressIn)
  return [...new Set(emails.filter((email) => email !== undefined && !isHidden(email)))].map(String)
}

/** Providers put `redacted`, a row of one letter or a hash in place of the local part or of the domain. */
const isHidden = (email: string): boolean =>
  /^(?:redacted|x{3,}|undisclosed|\*+|unknown|hidden)@|@(?:redacted|x{3,}|unknown)/i.test(email)

/** JMRP: a forwarded message from Outlook.com's own address, with the recipient in its header. */
function fromForwarded(mail: SeenMail, returned: HeaderLists): FeedbackReport | undefined {
  const is_jmrp = returned["x-hmxmroriginalrecipient"] !== undefined
  if (!is_jmrp || !/staff@hotmail\.com/i.test(firstOf(mail.headers, "from"))) return undefined
  return {
    feedback_type: "abuse",
    original_recipients: recipientsOf([], returned),
    original_mail_from: addressIn(firstOf(returned, "return-path")) ?? null,
    original_headers: returned,
    arrival_date: instant(firstOf(returned, "date")),
    source_ip: sourceOf(firstOf(mail.headers, "subject").split(" ").at(-1)),
    user_agent: null,
  }
}

const sourceOf = (field: string | undefined): string | null => {
  const address = (field ?? "").replace(/^\[|\]$/g, "").slice(0, 60)
  return isAddress(address) ? address : null
}

/** Mail dates often end in a comment, which `Date` reads for some time zones only. */
function instant(field: string | undefined): string | null {
  const time = Date.parse((field ?? "").slice(0, 100).replace(/\s*\([^()]*\)\s*$/, ""))
  return Number.isNaN(time) ? null : new Date(time).toISOString()
}
