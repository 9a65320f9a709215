import { readFile } from "node:fs/promises"
import type { Blobs } from "../core/blobs"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import { domainOf, type Mailbox } from "../lib/address"
import { unpack } from "../lib/compression"
import { fileIn } from "../messages/contents"
import {
  type AudienceFields,
  categoryFields,
  findAudience,
  isBlocked,
} from "../messages/send-fields"
import type { Message } from "../messages/status-changes"
import { refuseAllSuppressed } from "../messages/suppressed"
import type { AttachmentRow, NewMessage } from "../messages/tables"
import { chosenForBytes, trackingAtHost } from "../tracking/choice"
import type { SubmittedContent } from "./filed-content"
import { newEmail, refuseSize, requireSendable, type Sender, type SendRules } from "./prepare"

const MOST_IN_ROW = 64 * 1024
const MOST_IN_ROWS = 512 * 1024

/** Larger mail, or mail to many, is a file. What is smaller costs less in a row for each recipient. */
export const fitsInRows = (size: number, rows: number): boolean =>
  size <= MOST_IN_ROW && size * rows <= MOST_IN_ROWS

/** An email as the bytes that are to be sent, and what they say. */
export interface EmailBytes extends AudienceFields {
  /** With CRLF line ends, without Bcc, ready to be signed. */
  raw: Uint8Array
  from: Mailbox
  reply_to: Mailbox[]
  subject: string
  rfc_message_id: string
  files: Omit<AttachmentRow, "id">[]
  decoded_bytes: number
  /** The header cannot be sent without SMTPUTF8. */
  wide: boolean
  /** There is html that could be tracked: no signature covers it. */
  has_html: boolean
  tags: string[]
  metadata: Record<string, unknown>
  /** When it is to be sent; null, or absent, for as soon as possible. */
  scheduled_at?: string | null
  /** Null is what the project says; what the account says does not count for bytes. */
  track_opens: boolean | null
  track_clicks: boolean | null
}

/**
 * As `prepare`, for bytes instead of fields: one message for each recipient. All of them name the same
 * bytes, which are on disk when this resolves, or small enough to stand in the rows.
 */
export async function prepareBytes(
  email: EmailBytes,
  recipients: Mailbox[],
  { caller, signal: _, suppressions: __, ...origin }: Sender,
  rules: SendRules,
  blobs: Blobs,
): Promise<NewMessage[]> {
  const { account_id, project_id, key_id, project_settings } = caller
  const { sandbox, reply_tracking } = project_settings
  const replyAddress = reply_tracking ? rules.replyAddress : undefined
  const { raw, from, reply_to, subject, rfc_message_id, tags, metadata, category } = email
  const audience = await findAudience(rules.read, project_id, email)
  const { subscriber, is_endable } = audience
  const own = await requireSendable(rules, caller, domainOf(from.email), recipients)
  const of = { project_id, channel: "email" } as const
  if (!isBlocked(audience)) await refuseAllSuppressed(rules.read, of, recipients, { category })
  refuseSize(email.decoded_bytes)
  const { content, submitted } = await stored(raw, email.wide, recipients.length, blobs)
  const attachments = email.files.map((file) => ({ id: newId(), ...file }))
  const kindOf = ({ email: address }: Mailbox) =>
    categoryFields(category, { project_id, address }, rules.unsubscribe, is_endable)
  const chosen = email.has_html ? chosenForBytes(email, caller) : undefined
  const track = chosen && (await trackingAtHost(chosen, caller, own, rules))
  return recipients.map((to) =>
    newEmail({
      ...origin,
      ...{ account_id, project_id, api_key_id: key_id, sandbox, stream: "transactional" },
      ...{ to, from, reply_to, subject, rfc_message_id, tags, metadata },
      scheduled_at: email.scheduled_at ?? null,
      ...(subscriber && { subscriber_id: subscriber.id }),
      track,
      ...{ attachments, content, submitted, replyAddress, kind: kindOf(to) },
    }),
  )
}

async function stored(raw: Uint8Array, wide: boolean, messages: number, blobs: Blobs) {
  const size = raw.length
  if (fitsInRows(size, messages)) {
    const submitted = Buffer.from(raw.buffer, raw.byteOffset, size).toString("latin1")
    return { content: { submitted }, submitted: { size, sha256: null, wide } }
  }
  const { sha256 } = await blobs.put(raw)
  return { content: { submitted: null }, submitted: { size, sha256, wide } }
}

/** Where the submitted bytes of a message are: themselves, or the path of the file that holds them. */
export function placeOf(
  { envelope }: Pick<Message, "envelope">,
  { submitted }: SubmittedContent,
  blobs: Blobs,
): Uint8Array | string {
  if (submitted !== null) return Buffer.from(submitted, "latin1")
  const sha256 = envelope?.submitted?.sha256
  if (!sha256) throw new Error("the message does not say where its bytes are")
  return blobs.path(sha256)
}

/**
 * The bytes that were handed over, from what older versions kept of them: packed or not, in the row or in a file
 * that it names. Of a message whose bytes are a file they kept only what comes before them, and of a tracked one
 * the length of the common end and what comes before that. Rejects with ENOENT where the file is gone.
 */
export async function keptBytes(
  { envelope }: Pick<Message, "envelope">,
  row: Buffer,
  blobs: Blobs,
): Promise<Uint8Array> {
  const sha256 = envelope?.submitted?.sha256
  const own = fileIn(row)
  const kept = own ? await readFile(blobs.path(own)) : row
  if (!sha256) return unpack(kept)
  const file = await readFile(blobs.path(sha256))
  if (!envelope.track) return Buffer.concat([kept, file])
  const same = Number(kept.readBigUInt64BE())
  return Buffer.concat([unpack(kept.subarray(LENGTH_BYTES)), file.subarray(file.length - same)])
}

const LENGTH_BYTES = 8

const MESSAGE_ID_FIELD = /^message-id[ \t]*:.*(?:\r\n[ \t].*)*/im

/**
 * The same bytes under another Message-ID, for a message that is sent again: receivers drop a second
 * mail with an id that they know.
 */
export async function renamed(
  message: Pick<Message, "envelope">,
  content: SubmittedContent,
  rfc_message_id: string,
  blobs: Blobs,
) {
  const place = placeOf(message, content, blobs)
  const before = Buffer.from(typeof place === "string" ? await readFile(place) : place)
  const end = before.indexOf("\r\n\r\n")
  const head = before.toString("latin1", 0, end)
  if (end === -1 || !MESSAGE_ID_FIELD.test(head)) return fail("internal_error", NO_ID)
  const after = head.replace(MESSAGE_ID_FIELD, () => `Message-ID: ${rfc_message_id}`)
  const raw = Buffer.concat([Buffer.from(after, "latin1"), before.subarray(end)])
  return stored(raw, message.envelope?.submitted?.wide ?? false, 1, blobs)
}

const NO_ID = "The stored message has no Message-ID."
