import type { Blobs } from "../core/blobs"
import { conflict } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import type { Caller } from "../identity/caller"
import { comparable, type Mailbox } from "../lib/address"
import { categoryFields, topicFields } from "../messages/send-fields"
import { AUTH_SOURCE, type Message } from "../messages/status-changes"
import type { NewMessage } from "../messages/tables"
import { CONTENT_GONE, type EmailReading, find, lookupContent } from "./emails"
import { type EmailContent, isSubmitted, type SubmittedContent, stored } from "./filed-content"
import { renamed } from "./submitted"

type Repeating = Pick<EmailReading, "store" | "blobs" | "rules">

/** A new message with the frozen content of an old one: to all its recipients again, or to one address alone. */
export async function resend(
  parts: Repeating,
  caller: Caller,
  id: string,
  to: Mailbox | undefined,
  idempotency_key: string | null,
): Promise<NewMessage> {
  const { store, blobs, rules } = parts
  const message = await find(store.read, caller.project_id, id)
  if (message.source === AUTH_SOURCE) return conflict(SHOWN_MASKED, id, NO_COPIES)
  const kept = await lookupContent(parts, message)
  if (!kept) return conflict("body_expired", id, CONTENT_GONE)
  const left_out = message.envelope?.left_out ?? [] // each is asked for again
  const wanted = to ? [{ ...to, kind: "to" as const }] : [...message.recipients, ...left_out]
  const recipients = wanted.map(({ email, name, kind }) => ({ email, name, kind, ...WAITING }))
  const fresh = newId()
  const rfc_message_id = `<${fresh}@${message.sender_domain}>`
  const address = comparable(recipients[0]?.email ?? "")
  const { content, envelope } = await sameContent(message, kept, rfc_message_id, blobs)
  const about = { project_id: message.project_id, address }
  const { category, topic } = envelope ?? {}
  const kind =
    topic === undefined
      ? categoryFields(category, about, rules.unsubscribe, envelope?.unsubscribe !== undefined)
      : topicFields(topic, category ?? null, about, rules.unsubscribe)
  return {
    ...message,
    content: isSubmitted(content)
      ? content
      : await stored(withOwnLinks(content, envelope?.unsubscribe, kind.unsubscribe), blobs),
    envelope: envelope && { ...envelope, ...kind },
    id: fresh,
    address,
    recipients,
    batch_id: null,
    fan_out_id: null,
    source: "api",
    api_key_id: caller.key_id,
    sandbox: caller.project_settings.sandbox,
    subscriber_id: to ? null : message.subscriber_id,
    scheduled_at: null,
    idempotency_key,
    rfc_message_id,
    created_at: now(),
  }
}

/** Bytes name the Message-ID themselves, so they are written once more. */
async function sameContent(
  message: Message,
  content: EmailContent | SubmittedContent,
  rfc_message_id: string,
  blobs: Blobs,
): Promise<Pick<NewMessage, "envelope"> & { content: EmailContent | SubmittedContent }> {
  if (!message.envelope) return { content, envelope: null }
  const { left_out: _, decision: __, ...envelope } = message.envelope
  if (!isSubmitted(content)) return { content, envelope }
  const { submitted, ...stored } = await renamed(message, content, rfc_message_id, blobs)
  return { ...stored, envelope: { ...envelope, submitted } }
}

/** The reason of a refusal to copy a mail with a code or a link of an end user. */
export const SHOWN_MASKED = "masked"

export const NO_COPIES =
  "This mail brings a code or a link to sign in, and copies of it would show that. Ask for a new one."

const WAITING = { status: "queued" as const, status_reason: null }

/**
 * Bodies that were rendered for another recipient, with the links of this one: nobody may unsubscribe,
 * or see the choices of, the first recipient. Bodies without such links stay as they are.
 */
function withOwnLinks<Content extends Pick<EmailContent, "html" | "text">>(
  content: Content,
  before: string | undefined,
  own: string | undefined,
): Content {
  if (before === undefined || own === undefined || before === own) return content
  const replaced = (body: string | null) => body?.replaceAll(before, own) ?? null
  return { ...content, html: replaced(content.html), text: replaced(content.text) }
}
