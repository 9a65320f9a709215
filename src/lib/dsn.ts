import { type DsnAction, type DsnRecipient, statusIn } from "./dsn-recipient"
import { dsnFromText, isFromServer } from "./dsn-text"
import { fieldOf } from "./mail-text"
import { stageIn } from "./refusal"
import { addressIn, fieldsOf, onOneLine, type ReportGroup, reportGroups } from "./report-fields"
import {
  firstOf,
  type HeaderLists,
  headersIn,
  partOfType,
  type SeenMail,
  STATUS_TYPES,
  textOfPart,
} from "./seen-mail"

/** A delivery status notification: what became of a message that was sent (RFC 3464). */
export interface Dsn {
  recipients: DsnRecipient[]
  reporting_mta: string | null
  /** With its angle brackets. */
  original_message_id: string | null
  /** Empty when the report returns nothing of the message. */
  original_headers: HeaderLists
}

/** RFC 6522, 3 and RFC 6533, 5 and 6: what a report returns of the message. */
const RETURNED_TYPES = new Set([
  "message/rfc822",
  "text/rfc822-headers",
  "message/rfc822-headers",
  "message/global",
  "message/global-headers",
  "text/rfc822",
])

const MOST_RECIPIENTS = 100
const MOST_WORDS = 1_000
const MOST_TEXT = 64 * 1024

/**
 * The report in a mail: RFC 3464 with its international form (RFC 6533), or the text that older
 * and odd mail servers write; undefined when the mail is none. A forged mail reads like a genuine
 * one: only the address that it came to can prove it. Never throws.
 */
export function readDsn(mail: SeenMail): Dsn | undefined {
  const status = partOfType(mail, STATUS_TYPES)
  const returned = returnedHeaders(mail)
  const fields = status ? textOfPart(status) : flattened(mail)
  const standard = fields && fromStatus(fields, returned, mail)
  if (standard) return standard
  const found = dsnFromText(mail)
  if (!found) return undefined
  const headers = returned ?? found.returned
  return {
    recipients: found.recipients.slice(0, MOST_RECIPIENTS),
    reporting_mta: found.reporting_mta,
    original_message_id: messageId(headers, mail),
    original_headers: headers,
  }
}

/** The header of the message that a report returns, if it returns one as a part. */
export function returnedHeaders(mail: SeenMail): HeaderLists | undefined {
  const part = partOfType(mail, RETURNED_TYPES)
  return part && headersIn(textOfPart(part))
}

/** A gateway turned the report into plain text: its fields begin somewhere in there. */
function flattened(mail: SeenMail): string | undefined {
  const text = (mail.text ?? "").slice(0, MOST_TEXT)
  const start = isFromServer(mail) ? text.search(/^(?:reporting-mta|final-recipient):/im) : -1
  return start === -1 ? undefined : text.slice(start)
}

function fromStatus(text: string, returned: HeaderLists | undefined, mail: SeenMail) {
  const { of_message, of_recipients } = separated(reportGroups(text))
  const recipients = of_recipients
    .map((group) => recipientOf(group, mail))
    .filter((one) => one !== undefined)
    .slice(0, MOST_RECIPIENTS)
  if (recipients.length === 0) return undefined
  explain(recipients, mail)
  const headers = returned ?? {}
  const named = MESSAGE_ID_FIELDS.map((name) => fieldOf(of_message, name)).find(Boolean)
  return {
    recipients,
    reporting_mta: withoutType(fieldOf(of_message, "reporting-mta")),
    original_message_id: messageId(headers, mail, named),
    original_headers: headers,
  }
}

/** Some servers give the reason (Exim, OpenSMTPD) or the stage (Postfix) only to people. */
function explain(recipients: DsnRecipient[], mail: SeenMail) {
  if (recipients.every(({ diagnostic, stage }) => diagnostic !== null && stage !== null)) return
  const told = dsnFromText(mail)?.recipients ?? []
  for (const one of recipients) {
    const words = told.find(({ email }) => email === one.email)
    one.diagnostic ??= words?.diagnostic ?? null
    one.stage ??= words?.stage ?? null
    one.status = exactStatus(one.status, one.diagnostic)
  }
}

/** Gmail and Exchange name the message among the fields of the report. */
const MESSAGE_ID_FIELDS = ["x-original-message-id", "original-message-id"]

const IDENTITY = ["original-recipient", "final-recipient"]
const isIdentity = ([name]: [string, string]) => IDENTITY.includes(name)

/**
 * One group for each recipient. Some servers forget the empty line between two recipients, or set
 * one within a recipient.
 */
function separated(groups: ReportGroup[]) {
  const of_message: ReportGroup = []
  const of_recipients: ReportGroup[] = []
  for (const group of groups) {
    const first = group.findIndex(isIdentity)
    const last = of_recipients.at(-1)
    if (first !== -1) of_recipients.push(...cutAtRecipients(group, of_message))
    else if (last && !fieldOf(last, "action")) last.push(...group)
    else if (!last) of_message.push(...group)
  }
  return { of_message, of_recipients }
}

function cutAtRecipients(group: ReportGroup, of_message: ReportGroup): ReportGroup[] {
  const found: ReportGroup[] = [[]]
  for (const field of group) {
    const open = found.at(-1) ?? []
    const is_next = isIdentity(field) && open.some(([name]) => name === field[0])
    if (is_next) found.push([field])
    else if (PER_MESSAGE.has(field[0]) && found.length === 1) of_message.push(field)
    else open.push(field)
  }
  return found
}

/** RFC 3464, 2.2: these stand in a recipient's group only where the empty line before it is missing. */
const PER_MESSAGE = new Set(["reporting-mta", "arrival-date", "original-envelope-id"])

function recipientOf(group: ReportGroup, mail: SeenMail): DsnRecipient | undefined {
  const [status_code, comment] = statusOf(fieldOf(group, "status") ?? "")
  const said = longest(fieldsOf(group, "diagnostic-code"))
  const action = actionOf(fieldOf(group, "action") ?? "", status_code)
  if (!action) return undefined
  const original = addressOf(fieldOf(group, "original-recipient"))
  const final =
    addressOf(fieldOf(group, "final-recipient")) ?? addressOf(fieldOf(group, "x-actual-recipient"))
  const email = original ?? final ?? failedRecipient(mail) ?? rawAddress(group)
  if (email === undefined) return undefined
  const diagnostic = withoutType(said) ?? comment
  return {
    email,
    final_email: final !== undefined && final !== email ? final : null,
    action,
    status: exactStatus(status_code, diagnostic),
    diagnostic: diagnostic?.slice(0, MOST_WORDS).toWellFormed() ?? null,
    remote_mta: withoutType(fieldOf(group, "remote-mta")),
    stage: stageIn(diagnostic ?? ""),
  }
}

const longest = (texts: string[]) => texts.toSorted((a, b) => b.length - a.length)[0]

/** `5.1.1 (mailbox unknown)` in its two halves. */
function statusOf(field: string): [code: string | null, comment: string | null] {
  const [, code = null, rest = ""] = /^(\d\.\d{1,3}\.\d{1,3})\b(.*)$/.exec(field) ?? []
  const comment = rest.replace(/^[\s(]+|[\s)]+$/g, "")
  return [code, comment === "" ? null : comment]
}

const ACTIONS: [RegExp, DsnAction][] = [
  [/^(?:fail|undeliver|bounce|expire)/i, "failed"],
  [/^(?:delay|defer)/i, "delayed"],
  [/^deliver/i, "delivered"],
  [/^relay/i, "relayed"],
  [/^expand/i, "expanded"],
]

const ACTION_OF_CLASS: Record<string, DsnAction> = { 2: "delivered", 4: "delayed", 5: "failed" }

const actionOf = (field: string, status: string | null): DsnAction | undefined =>
  ACTIONS.find(([pattern]) => pattern.test(field))?.[1] ?? ACTION_OF_CLASS[status?.[0] ?? ""]

function exactStatus(status: string | null, diagnostic: string | null): string | null {
  if (status !== null && !status.endsWith(".0.0")) return status
  const within = statusIn(diagnostic ?? "")
  return within !== null && (status === null || within[0] === status[0]) ? within : status
}

/** The type is in front of a semicolon: `rfc822; a@b.test`, `dns; mx.b.test`, `smtp; 550 …`. */
function withoutType(field: string | undefined): string | null {
  const value = field?.replace(/^[\w-]{1,40}\s*;\s*/, "").trim()
  return value ? value.slice(0, MOST_WORDS).toWellFormed() : null
}

/** The address of a field; undefined where it is none of the Internet (X.400, a local name). */
function addressOf(field: string | undefined): string | undefined {
  const value = withoutType(field) ?? ""
  return addressIn(/^utf-8\s*;/i.test(field ?? "") ? unescapedUnicode(value) : value)
}

/** RFC 6533, 3: `\x{FC}` is one character. */
const unescapedUnicode = (text: string): string =>
  text.replace(/\\x\{([0-9a-f]{2,6})\}/gi, (all, hex) => {
    const code = Number.parseInt(hex, 16)
    return code >= 0x20 && code <= 0x10ffff ? String.fromCodePoint(code).toWellFormed() : all
  })

const failedRecipient = (mail: SeenMail) => addressIn(firstOf(mail.headers, "x-failed-recipients"))

const rawAddress = (group: ReportGroup): string | undefined =>
  IDENTITY.map((name) => withoutType(fieldOf(group, name))).find((value) => value !== null) ??
  undefined

/** The message it is about: its own header first, then what the report says, then what it answers. */
function messageId(returned: HeaderLists, mail: SeenMail, named?: string): string | null {
  const fields = [
    firstOf(returned, "message-id"),
    named ?? "",
    firstOf(mail.headers, "in-reply-to"),
    firstOf(mail.headers, "references"),
  ]
  return fields.map((field) => ID.exec(onOneLine(field))?.[0]).find(Boolean) ?? null
}

const ID = /<[^<>\s]{1,900}>/
