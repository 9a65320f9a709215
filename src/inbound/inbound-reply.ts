import { eq } from "drizzle-orm"
import { fail, type Problems } from "../core/errors"
import { isVerified } from "../domains/sending-domains"
import type { AttachedInput } from "../emails/attachments"
import { readSendEmail, type SendEmail } from "../emails/fields"
import { comparable, domainOf, type Mailbox, sendableForm } from "../lib/address"
import { messages } from "../messages/tables"
import type { Reader } from "../store/store"
import type { InboundRow } from "./tables"

interface ReplyFields {
  html: string | null
  text: string | null
  from: Mailbox | undefined
  /** Undefined: `Re:` and the subject of the mail. */
  subject: string | undefined
  attachments: AttachedInput[]
}

/** Reads the body of a reply by the rules of a send. The recipient follows from the mail. */
export function readReply(body: unknown, problems: Problems): ReplyFields {
  const given = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>
  const { html, text, from, subject, attachments } = given
  const has_subject = subject != null
  const email = readSendEmail(
    { html, text, from, attachments, to: NOBODY, subject: has_subject ? subject : "Re:" },
    problems,
  )
  return { ...email, subject: has_subject ? email.subject : undefined }
}

/** Stands for the recipient while the other fields are read. */
const NOBODY = "nobody@mailbox.test"

/**
 * The reply to a mail as an email that can be sent: to Reply-To, otherwise to From, in its thread
 * (RFC 5322, 3.6.4). Throws 409 for a mail that no answer may go to: an automatic one (RFC 3834), one
 * with the null sender, one without an author.
 */
export function replyTo(
  row: InboundRow,
  fields: ReplyFields,
  from: Mailbox | undefined,
): SendEmail {
  refuseLoop(row)
  const [to, ...cc] = authorsOf(row)
  if (!to) return refuse(row, "no_sender", "The mail names no address for a reply.")
  const { html, text, attachments, subject = prefixed("Re:", row.subject) } = fields
  return {
    ...{ ...EMPTY, to, cc, from, subject, html, text, attachments },
    headers: threadHeaders(row),
  }
}

export const EMPTY = {
  bcc: [],
  reply_to: [],
  tags: [],
  metadata: {},
  category: null,
  track_opens: null,
  track_clicks: null,
}

const AUTOMATIC = new Set(["bounce", "complaint", "auto_reply", "dmarc_report", "tls_report"])

function refuseLoop(row: InboundRow) {
  const { auto_submitted, kind, session, status } = row
  const is_automatic = auto_submitted !== null && !/^no\b/i.test(auto_submitted.trim())
  if (status === "received") {
    refuse(row, "not_processed", "The mail is not processed yet. Try again in a few seconds.")
  }
  if (is_automatic || AUTOMATIC.has(kind)) {
    refuse(row, "auto_submitted", "A program sent this mail. A reply could cause a mail loop.")
  }
  if (session.mail_from === "") {
    refuse(row, "null_sender", "This mail has the null sender, so it must not be answered.")
  }
}

const refuse = ({ id }: InboundRow, reason: string, message: string): never =>
  fail("conflict", message, { reason, id })

const MOST_COPIES = 49

/** The mailboxes that want the reply, each once. An address that cannot be written to is left out. */
export function authorsOf({ parsed, from_email, from_name }: InboundRow): Mailbox[] {
  const author = from_email === null ? [] : [{ email: from_email, name: from_name }]
  const named = (parsed?.reply_to ?? []).flatMap(sendable)
  const all = named.length > 0 ? named : author.flatMap(sendable)
  const by_address = Map.groupBy(all, ({ email }) => comparable(email))
  const mailboxes = [...by_address.values()].flatMap(([first]) => first ?? [])
  return mailboxes
    .slice(0, 1 + MOST_COPIES)
    .map(({ email, name }) => ({ email, name: name && (oneLine(name) || null) }))
}

function sendable({ email, name }: Mailbox): Mailbox[] {
  const written = sendableForm(email)
  return written === undefined ? [] : [{ email: written, name }]
}

const MAX_SUBJECT = 998

/** `Re: Your receipt`, and not a second time. Line breaks of the foreign subject end no header. */
export function prefixed(prefix: string, subject: string | null): string {
  const line = oneLine(subject ?? "") || "(no subject)"
  const has_prefix = line.toLowerCase().startsWith(prefix.toLowerCase())
  return [...(has_prefix ? line : `${prefix} ${line}`)].slice(0, MAX_SUBJECT).join("").trim()
}

export const oneLine = (text: string) =>
  text
    .toWellFormed()
    .replace(/[\p{Cc}\u2028\u2029]+/gu, " ")
    .trim()

/** RFC 5322, 3.6.4, of characters that need no encoding. */
const MESSAGE_ID = /^<[!-;=?-~]{1,250}>$/

/** Ids of a long conversation that go along: the first, which names the thread, and the last ones. */
const MOST_REFERENCES = 20

function threadHeaders({ rfc_message_id, in_reply_to, parsed }: InboundRow) {
  const known = parsed?.references.length ? parsed.references : [in_reply_to]
  const all = [...known, rfc_message_id].filter((id) => id !== null && MESSAGE_ID.test(id))
  const ids = [...new Set(all)]
  const [first] = ids
  const some = ids.length > MOST_REFERENCES ? [first, ...ids.slice(1 - MOST_REFERENCES)] : ids
  const headers: Record<string, string> = {}
  if (rfc_message_id !== null && MESSAGE_ID.test(rfc_message_id)) {
    headers["In-Reply-To"] = rfc_message_id
  }
  if (some.length > 0) headers.References = some.join(" ")
  return headers
}

/**
 * The address in whose name an answer goes out: the one that received the mail. Where that was an
 * address of the instance (`r+<token>` of `reply_tracking`), it is the sender of the answered email.
 * Undefined for a bare `postmaster`, which is no address to send from.
 */
export async function ownAddress(
  db: Reader,
  { project_id, to_email, replied_to_message_id }: InboundRow,
): Promise<Mailbox | undefined> {
  const email = sendableForm(to_email)
  if (email === undefined) return undefined
  const received: Mailbox = { email, name: null }
  if (replied_to_message_id === null) return received
  if (await isVerified(db, project_id, domainOf(to_email), true)) return received
  const { id, envelope } = messages
  const rows = db.select({ envelope }).from(messages).where(eq(id, replied_to_message_id))
  return (await rows)[0]?.envelope?.from ?? received
}
