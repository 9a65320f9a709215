import type { Problems } from "../core/errors"
import { optionalText } from "../http/field-schemas"
import { refuseNotOffered } from "../http/validate"
import { type Mailbox, notOneAddress, parseMailbox } from "../lib/address"
import {
  isLine,
  REQUIRED,
  readFlag,
  readMetadata,
  readObject,
  readTags,
  readTemplateFields,
  type TemplateFields,
  templateFields,
} from "../messages/send-body"
import {
  type AudienceFields,
  readCategory,
  readScheduledAt,
  readSubscriberId,
} from "../messages/send-fields"
import { SOURCE_BYTES } from "../templates/limits"
import { type AttachedInput, readAttachments } from "./attachments"

/** A send request, read and checked as far as its own fields go. */
export interface SendEmail extends Partial<TemplateFields>, AudienceFields {
  to: Mailbox
  from: Mailbox | undefined
  cc: Mailbox[]
  bcc: Mailbox[]
  subject: string
  html: string | null
  text: string | null
  reply_to: Mailbox[]
  tags: string[]
  metadata: Record<string, unknown>
  headers: Record<string, string>
  attachments: AttachedInput[]
  /** When it is to be sent; null, or absent, for as soon as possible. */
  scheduled_at?: string | null
  /** Null is what the project says. */
  track_opens: boolean | null
  track_clicks: boolean | null
}

/** Of the body of one send, base64 of its attachments included. */
export const SEND_LIMIT_BYTES = 15_728_640

const MAX_SUBJECT = 998
const MAX_COPIES = 49
const MOST_REPLY_TO = 10

const NO_RECIPIENT: Mailbox = { email: "", name: null }

/** Reads the body of `POST /v1/emails`. The result counts only while there are no problems. */
export function readSendEmail(body: unknown, problems: Problems): SendEmail {
  const given = asObject(body, problems)
  for (const name of NOT_OFFERED) {
    if (given[name] !== undefined) refuseNotOffered(name, given[name], problems)
  }
  const texts = readTemplateFields(given, problems)
  const has_template = given.template != null || given.template_id != null
  const email: SendEmail = {
    to: readOneAddress(given.to, "to", problems) ?? NO_RECIPIENT,
    from: given.from == null ? undefined : readAddress(given.from, "from", problems),
    cc: readAddresses(given.cc, "cc", MAX_COPIES, problems),
    bcc: readAddresses(given.bcc, "bcc", MAX_COPIES, problems),
    // A template takes their place, so they are not even looked at.
    subject: has_template ? "" : readSubject(given.subject, texts, problems),
    html: has_template ? null : readText(given.html, "html", problems),
    text: has_template ? null : readText(given.text, "text", problems),
    ...texts,
    reply_to: readAddresses(given.reply_to, "reply_to", MOST_REPLY_TO, problems),
    tags: readTags(given.tags, problems),
    metadata: readMetadata(given.metadata, problems),
    headers: readHeaders(given.headers, problems),
    attachments: given.attachments == null ? [] : readAttachments(given.attachments, problems),
    category: readCategory(given.category, "category", problems),
    subscriber_id: readSubscriberId(given.subscriber_id, "subscriber_id", problems),
    scheduled_at: readScheduledAt(given.scheduled_at, "scheduled_at", problems),
    track_opens: readFlag(given.track_opens, "track_opens", problems),
    track_clicks: readFlag(given.track_clicks, "track_clicks", problems),
  }
  if (email.category !== null) refuseOwnFields(email.headers, problems)
  if (!has_template && isNothing(given.html) && isNothing(given.text)) {
    problems.add("html", "required", "An email needs html or text. Give one or both.")
  }
  if (email.cc.length + email.bcc.length > MAX_COPIES) {
    problems.add("cc", "too_many", `cc and bcc together may have at most ${MAX_COPIES} addresses.`)
  }
  return email
}

/** An empty text is no content: a blank mail is a mistake. */
const isNothing = (value: unknown) => value == null || value === ""

/** Reads the body of a resend: the recipients of before, unless another one is named. */
export function readResend(body: unknown, problems: Problems): { to: Mailbox | undefined } {
  const { to } = asObject(body, problems)
  return { to: to == null ? undefined : readOneAddress(to, "to", problems) }
}

/** Reads the body of a reschedule. Null in the answer means now. */
export function readReschedule(body: unknown, problems: Problems): { at: string | null } {
  const { scheduled_at } = asObject(body, problems)
  if (scheduled_at === null) problems.add("scheduled_at", "required", REQUIRED)
  return { at: readScheduledAt(scheduled_at, "scheduled_at", problems) }
}

const asObject = (body: unknown, problems: Problems) =>
  readObject(body, "body", problems, "The body must be a JSON object.")

function readOneAddress(value: unknown, path: string, problems: Problems): Mailbox | undefined {
  if (value == null) return problems.add(path, "required", REQUIRED)
  if (!Array.isArray(value)) return readAddress(value, path, problems)
  if (value.length === 1) return readAddress(value[0], path, problems)
  const hint = `The value must be one recipient. You gave ${value.length}. Use cc, bcc or POST /v1/emails/batch for several.`
  return problems.add(path, "invalid", hint)
}

function readAddresses(value: unknown, path: string, most: number, problems: Problems): Mailbox[] {
  if (value == null) return []
  const list = Array.isArray(value) ? value : [value]
  if (list.length > most) {
    const hint = `The list may have at most ${most} addresses. You gave ${list.length}.`
    return problems.add(path, "too_many", hint) ?? []
  }
  return list.flatMap((one, at) => {
    const where = Array.isArray(value) ? `${path}.${at}` : path
    return readAddress(one, where, problems) ?? []
  })
}

/** `a@b.c`, `Name <a@b.c>`, or `{email, name?}`. */
export function readAddress(value: unknown, path: string, problems: Problems): Mailbox | undefined {
  const refuse = (given: unknown, where: string) =>
    problems.add(where, "invalid_email", notOneAddress(given))
  if (typeof value === "string") return parseMailbox(value) ?? refuse(value, path)
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const hint = "The value must be an address, or an object {email, name}."
    return problems.add(path, "invalid", hint)
  }
  const { email, name } = value as Record<string, unknown>
  if (email === undefined) return problems.add(`${path}.email`, "required", REQUIRED)
  const mailbox = typeof email === "string" ? parseMailbox(email) : undefined
  if (!mailbox || mailbox.name !== null) return refuse(email, `${path}.email`)
  if (name == null) return mailbox
  if (typeof name === "string" && isLine(name, MAX_SUBJECT)) return { email: mailbox.email, name }
  const hint = `${lineOf(MAX_SUBJECT).slice(0, -1)}, without control characters.`
  return problems.add(`${path}.name`, "invalid", hint)
}

/** Handlebars in a subject may be longer than what comes of it. */
function readSubject(value: unknown, { variables }: TemplateFields, problems: Problems): string {
  if (value == null) return problems.add("subject", "required", REQUIRED) ?? ""
  if (variables !== null) return readText(value, "subject", problems) ?? ""
  if (typeof value === "string" && value !== "" && isLine(value, MAX_SUBJECT)) return value
  const hint = `The value must be one line of 1 to ${MAX_SUBJECT} characters.`
  return problems.add("subject", "invalid", hint) ?? ""
}

function readText(value: unknown, path: string, problems: Problems): string | null {
  if (value == null) return null
  if (typeof value === "string" && !value.includes("\0")) return value.toWellFormed()
  const hint = "The value must be a text without NUL characters."
  return problems.add(path, "invalid", hint) ?? null
}

const lineOf = (most: number) => `The value must be one line of at most ${most} characters.`

export const MOST_HEADERS = 25
const MAX_HEADER_VALUE = 998
const HEADER_NAME = /^[A-Za-z0-9-]{1,76}$/

/**
 * What the service or the servers on the way write themselves: a second one would contradict it,
 * or say something about the message in their name (contract 20, section 1.1).
 */
const OWN_HEADERS = new RegExp(
  `^(${[
    "from|to|cc|bcc|subject|date|sender|reply-to|return-path|received|message-id|mime-version",
    "dkim-signature|domainkey-signature|authentication-results|received-spf|arc-.*",
    "delivered-to|errors-to|resent-.*|content-.*|x-ses-.*",
  ].join("|")})$`,
  "i",
)

function readHeaders(value: unknown, problems: Problems): Record<string, string> {
  if (value == null) return {}
  const hint = "The value must be an object of names and values."
  const headers = readObject(value, "headers", problems, hint)
  const fields = Object.entries(headers)
  if (fields.length > MOST_HEADERS) {
    const hint = `An email may have at most ${MOST_HEADERS} headers of its own.`
    return problems.add("headers", "too_many", hint) ?? {}
  }
  for (const [name, text] of fields) checkHeader(name, text, problems)
  return headers as Record<string, string>
}

function checkHeader(name: string, text: unknown, problems: Problems) {
  if (!HEADER_NAME.test(name)) return problems.add("headers", "invalid", BAD_HEADER_NAME)
  const path = `headers.${name}`
  if (OWN_HEADERS.test(name)) return problems.add(path, "invalid", NOT_YOURS)
  if (typeof text === "string" && isLine(text, MAX_HEADER_VALUE)) return
  problems.add(path, "invalid", lineOf(MAX_HEADER_VALUE))
}

const BAD_HEADER_NAME = "A header name must have only letters, digits and hyphens."
const NOT_YOURS = "You cannot set this header. The service or a mail server on the way writes it."

/** Of other services, or not offered yet. They are refused: ignoring them would break a promise. */
export const NOT_OFFERED = ["topic_id", "topicId", "region"]

/** Header fields that the service writes on mail with a category. */
const UNSUBSCRIBE_FIELD = /^list-unsubscribe(?:-post)?$/i

function refuseOwnFields(headers: object, problems: Problems) {
  for (const name of Object.keys(headers)) {
    if (UNSUBSCRIBE_FIELD.test(name)) problems.add(`headers.${name}`, "invalid", WRITTEN)
  }
}

const WRITTEN =
  "The service writes this header on an email with a category. Leave the header out, or the category."

/** The texts of a send, and what stands in their place. */
export const contentFields = {
  subject: optionalText({
    maxLength: SOURCE_BYTES,
    description:
      "Required without a template. A mail has 1 to 998 characters of it; its Handlebars source may be longer.",
  }),
  html: optionalText(),
  text: optionalText({ description: "Plain text. Without it, it is made from `html`." }),
  ...templateFields("`subject`, `html` and `text`"),
}
