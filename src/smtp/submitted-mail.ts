import { isAscii as isAsciiBytes, isUtf8 } from "node:buffer"
import { createHash } from "node:crypto"
import type { EmailBytes } from "../emails/submitted"
import { domainOf, isAscii, isMailbox, type Mailbox, needsSmtputf8, wireForm } from "../lib/address"
import { readAddressList } from "../lib/address-list"
import { textOf } from "../lib/charset"
import { safeFilename } from "../lib/file-names"
import { decodeWords } from "../lib/mail-text"
import {
  contentOf,
  isFile,
  MAX_FIELDS,
  type MailLeaf,
  readTree,
  TREE_PROBLEMS,
} from "../lib/mail-tree"
import { mailboxField, textField } from "../lib/mime"
import { hasLongLine, shortLines } from "../lib/transport-encoding"

/** A mail as a client submitted it. */
export interface MailToRead {
  raw: Uint8Array
  /** The client said SMTPUTF8 at MAIL, so that its header may be UTF-8 (RFC 6532). */
  smtputf8: boolean
  /** Of the header fields that are added: a new id, the host of this instance, ISO 8601. */
  id: string
  host: string
  received_at: string
}

/** A mail that may be sent, as far as its own bytes say. */
export interface SubmittedMail
  extends Pick<EmailBytes, "raw" | "from" | "reply_to" | "subject" | "rfc_message_id" | "files">,
    Pick<EmailBytes, "decoded_bytes" | "has_html" | "wide"> {
  /** The mailboxes of To and Cc, for the names of recipients. */
  named: Mailbox[]
  /** The Message-ID where the client gave it, by which a repetition is told. */
  given_message_id: string | null
  /** Of subject and body, as they were submitted. */
  content_hash: string
  idempotency_key: string | null
  options: SubmittedOptions
}

/** The `X-Svc-*` fields that this server acts upon, and the values of the others by name. */
interface SubmittedOptions {
  tags: string[]
  metadata: Record<string, string>
  others: [name: string, value: string][]
}

/** Why a mail is no mail that may be sent, in words. */
export interface MailRefusal {
  refused: string
}

interface HeadField {
  /** In lower case. */
  name: string
  /** With its line ends; a character is a byte. */
  text: string
}

const MAX_HEAD_BYTES = 256 * 1024

/**
 * Reads and cleans a submitted mail (contract 22, section 1). Everything that need not change stays as
 * it is: order, folding, encodings and boundaries. Runs in a worker for large mail.
 */
export function readSubmitted(mail: MailToRead): SubmittedMail | MailRefusal {
  const raw = Buffer.from(mail.raw.buffer, mail.raw.byteOffset, mail.raw.byteLength)
  const end = raw.indexOf("\r\n\r\n")
  const body = end === -1 ? raw.subarray(raw.length) : raw.subarray(end + 4)
  if ((end === -1 ? raw.length : end) > MAX_HEAD_BYTES) return unreadable(LONG_HEAD)
  const fields = splitHead(raw.toString("latin1", 0, end === -1 ? raw.length : end))
  if (typeof fields === "string") return unreadable(fields)
  const from = authorOf(fields)
  if (typeof from === "string") return unreadable(from)
  const tree = readTree(raw)
  if (tree.problem) return unreadable(TREE_PROBLEMS[tree.problem])
  const subjects = named(fields, "subject")
  if (subjects.length > 1) return unreadable("The message has more than one Subject header.")
  const cleaned = clean([...fields, ...labelsFor(fields, body)], mail, from)
  const sent = Buffer.concat([Buffer.from(cleaned.head, "latin1"), body])
  return {
    raw: hasLongLine(sent) ? shortLines(sent) : sent,
    from,
    reply_to: mailboxesOf(fields, "reply-to"),
    subject: oneLine(decodeWords(subjects[0] ?? "")),
    named: ["to", "cc"].flatMap((name) => mailboxesOf(fields, name)),
    rfc_message_id: cleaned.message_id,
    given_message_id: cleaned.given_message_id,
    content_hash: createHash("sha256").update(`${subjects[0]}\n`).update(body).digest("hex"),
    idempotency_key: named(fields, "idempotency-key")[0]?.trim() ?? null,
    options: optionsOf(fields),
    ...describe(tree.leaves),
    has_html: !SEALED.test(named(fields, "content-type")[0] ?? "") && tree.leaves.some(isHtml),
    wide: cleaned.wide,
  }
}

const unreadable = (refused: string): MailRefusal => ({ refused })

const LONG_HEAD = `The header has more than ${MAX_HEAD_BYTES / 1024} KB.`

/** RFC 5322, 2.2; white space before the colon is obsolete, but it occurs (4.5). */
const FIELD_START = /^([!-9;-~]+)[ \t]*:/

/** The fields of a header, or why it is none. */
function splitHead(head: string): HeadField[] | string {
  const lines = head.split("\r\n")
  if (/^>?From /.test(lines[0] ?? "")) lines.shift() // of a mailbox file (RFC 4155), no field
  const fields: HeadField[] = []
  for (const line of lines) {
    const last = fields.at(-1)
    if (/^[ \t]/.test(line) && last) last.text += `${line}\r\n`
    else {
      const [, name] = FIELD_START.exec(line) ?? []
      if (name === undefined) return "A line of the header is not a header field."
      fields.push({ name: name.toLowerCase(), text: `${line}\r\n` })
    }
  }
  return fields.length > MAX_FIELDS ? "The header has more than 1,000 fields." : fields
}

/** Unfolded, as text; encoded words as they stand. */
function fieldValue({ text }: HeadField): string {
  const value = text.slice(text.indexOf(":") + 1).replaceAll("\r\n", "")
  return isAscii(value) ? value.trim() : textOf(Buffer.from(value, "latin1"), "utf-8").trim()
}

const named = (fields: HeadField[], name: string): string[] =>
  fields.filter((field) => field.name === name).map(fieldValue)

const MOST_MAILBOXES = 200

const mailboxesOf = (fields: HeadField[], name: string): Mailbox[] =>
  named(fields, name)
    .flatMap((value) => readAddressList(value).mailboxes)
    .filter(({ email }) => isMailbox(email))
    .slice(0, MOST_MAILBOXES)

/** The one mailbox of From, or why there is none. */
function authorOf(fields: HeadField[]): Mailbox | string {
  const [value, ...others] = named(fields, "from")
  if (value === undefined) return "The message has no From header."
  if (others.length > 0) return "The message has more than one From header."
  const { mailboxes, is_plain } = readAddressList(value)
  const [from, ...further] = mailboxes
  if (from && is_plain && further.length === 0 && isMailbox(from.email)) return from
  return "The From header must name exactly one mailbox."
}

const HAS_CHARSET = /;\s*charset\s*=/i

/** The MIME fields without which a reader would have to guess what the 8-bit bytes of a text mean. */
function labelsFor(fields: HeadField[], body: Uint8Array): HeadField[] {
  if (isAsciiBytes(body)) return []
  const charset = isUtf8(body) ? "utf-8" : "windows-1252"
  const type = fields.find(({ name }) => name === "content-type")
  const is_text = !type || (/:\s*text\//i.test(type.text) && !HAS_CHARSET.test(type.text))
  if (type && is_text) type.text = type.text.replace(/;?\s*$/, `; charset=${charset}\r\n`)
  const labels = {
    "MIME-Version": "1.0",
    ...(is_text && { "Content-Type": `text/plain; charset=${charset}` }),
    ...(is_text && { "Content-Transfer-Encoding": "8bit" }),
  }
  return Object.entries(labels)
    .map(([name, value]) => ({ name: name.toLowerCase(), text: `${name}: ${value}\r\n` }))
    .filter(({ name }) => !fields.some((field) => field.name === name))
}

/** What a server on the way, or this one, writes for others. It must not leave in the author's name. */
const REMOVED =
  /^(?:(?:resent-)?bcc|return-path|delivered-to|authentication-results|arc-.*|dkim-signature|x-ses-.*|x-svc-.*|idempotency-key)$/

const CATEGORY = "x-svc-category"

/** Mail with a category gets fields of the service, and must not have them twice. */
const REMOVED_OF_CATEGORY = new RegExp(`${REMOVED.source}|^list-unsubscribe(?:-post)?$`)

function clean(fields: HeadField[], mail: MailToRead, from: Mailbox) {
  const { id, host, received_at } = mail
  const date = `${new Date(received_at).toUTCString().replace("GMT", "+0000")}\r\n`
  const given = fields.find(({ name, text }) => name === "message-id" && /:\s*\S/.test(text))
  const given_message_id = given ? messageIdOf(fieldValue(given)) : null
  const message_id = given_message_id ?? `<${id}@${domainOf(from.email)}>`
  const removed = fields.some(({ name }) => name === CATEGORY) ? REMOVED_OF_CATEGORY : REMOVED
  const kept = fields.filter(
    ({ name }) => !removed.test(name) && (name !== "message-id" || given !== undefined),
  )
  const written = kept.map((field) => (mail.smtputf8 ? asItIs(field) : inAscii(field)))
  const protocol = mail.smtputf8 ? "UTF8SMTPSA" : "ESMTPSA"
  const head = [
    `Received: by ${host} with ${protocol} id ${id};\r\n\t${date}`,
    ...written.map(({ text }) => text),
    given ? "" : `Message-ID: ${message_id}\r\n`,
    kept.some(({ name }) => name === "date") ? "" : `Date: ${date}`,
    "\r\n",
  ].join("")
  return { head, message_id, given_message_id, wide: written.some(({ wide }) => wide) }
}

/** In bytes, since it is the key of an index. */
const MAX_MESSAGE_ID = 998

function messageIdOf(value: string): string {
  const text = oneLine(/<[^<>\s]+>/.exec(value)?.[0] ?? value)
  if (Buffer.byteLength(text) <= MAX_MESSAGE_ID) return text
  return Buffer.from(text).toString("utf8", 0, MAX_MESSAGE_ID)
}

interface WrittenField {
  text: string
  wide: boolean
}

const asItIs = ({ text }: HeadField): WrittenField => ({ text, wide: !isAscii(text) })

const ADDRESS_FIELD = /^(?:resent-)?(?:from|sender|reply-to|to|cc)$/
const STRUCTURED_FIELD =
  /^(?:content-.*|mime-version|received|date|message-id|in-reply-to|references)$/

/**
 * A header outside ASCII may travel only by SMTPUTF8, for which this client did not ask (RFC 6532). So
 * such a field is written with encoded words (RFC 2047). An address outside ASCII stays as it is.
 */
function inAscii(field: HeadField): WrittenField {
  const { name, text } = field
  if (isAscii(text)) return { text, wide: false }
  const spelled = text.slice(0, text.indexOf(":")).trim()
  if (ADDRESS_FIELD.test(name)) {
    const { mailboxes, is_plain } = readAddressList(fieldValue(field))
    const wide = mailboxes.some(({ email }) => needsSmtputf8(email))
    if (wide || !is_plain) return { text, wide }
    const list = mailboxes.map((one) => ({ name: one.name ?? "", address: wireForm(one.email) }))
    return { text: mailboxField(spelled, list), wide: false }
  }
  if (STRUCTURED_FIELD.test(name)) return { text, wide: false }
  return { text: textField(spelled, decodeWords(fieldValue(field))), wide: false }
}

const MAX_TEXT = 998

/** For a column: what a header may hold, but no line of text. */
const oneLine = (text: string): string =>
  text
    .replace(/[\p{Cc}\u2028\u2029]+/gu, " ")
    .trim()
    .slice(0, MAX_TEXT)
    .toWellFormed()

const OPTION = /^x-svc-/
const METADATA = "x-svc-metadata-"

function optionsOf(fields: HeadField[]): SubmittedOptions {
  const options: SubmittedOptions = { tags: [], metadata: {}, others: [] }
  for (const field of fields) {
    const { name, text } = field
    if (!OPTION.test(name)) continue
    const value = decodeWords(fieldValue(field))
    const spelled = text.slice(0, text.indexOf(":")).trim()
    if (name === "x-svc-tag") options.tags.push(value)
    else if (name.startsWith(METADATA)) {
      // As a field of its own, since the name may be one that every object has.
      const own = { value, enumerable: true, writable: true, configurable: true }
      Object.defineProperty(options.metadata, spelled.slice(METADATA.length), own)
    } else options.others.push([spelled, value])
  }
  return options
}

const SEALED = /^\s*multipart\/(?:signed|encrypted)\b/i

const isHtml = (leaf: MailLeaf) => leaf.content_type === "text/html" && !isFile(leaf)

function describe(leaves: MailLeaf[]): Pick<SubmittedMail, "files" | "decoded_bytes"> {
  const files: SubmittedMail["files"] = []
  let decoded_bytes = 0
  for (const leaf of leaves) {
    const content = contentOf(leaf)
    decoded_bytes += content.length
    if (!isFile(leaf)) continue
    files.push({
      filename: fileNameOf(leaf, files.length + 1),
      content_type: leaf.content_type.slice(0, MAX_WORD),
      content_id: leaf.content_id?.slice(0, MAX_WORD) ?? null,
      size: content.length,
      sha256: createHash("sha256").update(content).digest("hex"),
    })
  }
  return { files, decoded_bytes }
}

const MAX_WORD = 255

const fileNameOf = ({ filename, content_type }: MailLeaf, number: number): string =>
  safeFilename(
    filename,
    content_type === "message/rfc822" ? `message-${number}.eml` : `attachment-${number}`,
  )
