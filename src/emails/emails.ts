import { and, count, desc, eq, ne } from "drizzle-orm"
import type { Blobs } from "../core/blobs"
import { fail } from "../core/errors"
import { isUuid, newId } from "../core/ids"
import { now } from "../core/time"
import * as feed from "../events/feed"
import type { ListWindow } from "../http/page"
import type { Caller } from "../identity/caller"
import { LEASED } from "../jobs/queue"
import { jobs } from "../jobs/tables"
import { comparable, type Mailbox } from "../lib/address"
import { unpack } from "../lib/compression"
import type { Message } from "../messages/facts"
import type { NewMessage } from "../messages/pipeline"
import { abandon } from "../messages/settle"
import { attempts, messageContents, messageRaws, messages } from "../messages/tables"
import type { Outcome } from "../providers/provider"
import { held } from "../store/locks"
import type { Reader, Tx } from "../store/store"
import { oldestFirst } from "../store/stretch"
import { asTheyWait } from "./held-mail"
import type { EmailContent } from "./prepare"
import { eventEntry, whole } from "./record"
import { textFromHtml } from "./text-from-html"

const gone = () => fail("not_found", "There is no such email.")

/** A message of the project, or 404: an absent one and a foreign one answer alike. */
export async function find(db: Reader, project_id: string, id: string): Promise<Message> {
  if (!isUuid(id)) return gone()
  const ours = and(
    eq(messages.id, id),
    eq(messages.project_id, project_id),
    eq(messages.channel, "email"),
  )
  const [message] = await db.select().from(messages).where(ours)
  return message ?? gone()
}

/** What `find` found, and nobody else changes the message until the transaction ends. */
async function hold(tx: Tx, { id, project_id }: Message): Promise<Message> {
  const ours = and(eq(messages.id, id), eq(messages.project_id, project_id))
  const [message] = await held(tx.select().from(messages).where(ours))
  return message ?? gone()
}

/** The whole record. */
export async function get(db: Reader, project_id: string, id: string) {
  const [message] = await asTheyWait(db, [await find(db, project_id, id)])
  if (!message) return gone()
  const [content, story] = [await lookupContent(db, id), await feed.about(db, project_id, id)]
  return whole(message, content, story)
}

export async function events(db: Reader, project_id: string, id: string) {
  const { status } = await find(db, project_id, id)
  const story = await feed.about(db, project_id, id)
  return { email_id: id, status, events: story.map(eventEntry) }
}

export async function content(db: Reader, project_id: string, id: string) {
  const { subject } = await find(db, project_id, id)
  const kept =
    (await lookupContent(db, id)) ??
    fail("not_found", "The content of this email is no longer stored.")
  return { subject: subject as string, html: kept.html, text: kept.text, headers: kept.headers }
}

/** The bytes that were handed over; there are none before the first attempt. */
export async function raw(db: Reader, project_id: string, id: string): Promise<Uint8Array> {
  await find(db, project_id, id)
  const [row] = await db.select().from(messageRaws).where(eq(messageRaws.message_id, id))
  return row
    ? unpack(row.raw)
    : fail("not_found", "The message has not been composed yet. Try again in a few seconds.")
}

export async function attachment(db: Reader, blobs: Blobs, project_id: string, ids: FileIds) {
  const { envelope } = await find(db, project_id, ids.email_id)
  const row = envelope?.attachments.find(({ id }) => id === ids.attachment_id)
  const bytes = row && (await blobs.get(row.sha256))
  if (!row || !bytes) return fail("not_found", "There is no such attachment.")
  return { ...row, bytes }
}

interface FileIds {
  email_id: string
  attachment_id: string
}

/** Oldest first. An attempt's id in a page is its number. */
export async function attemptsOf(db: Reader, project_id: string, id: string, window: ListWindow) {
  await find(db, project_id, id)
  const ours = eq(attempts.message_id, id)
  const { where, order } = oldestFirst(attempts.attempt, window)
  const some = db.select().from(attempts).where(and(ours, where)).orderBy(order)
  const found = await some.limit(window.limit).offset(window.offset)
  const rows = found.map(({ message_id: _, ...row }) => ({
    id: String(row.attempt),
    ...row,
    outcome: row.outcome as AttemptOutcome,
  }))
  const total = async () => {
    const [counted] = await db.select({ value: count() }).from(attempts).where(ours)
    return counted?.value ?? 0
  }
  return { rows, total }
}

/** `login_refused` says that the provider refused our credentials. */
type AttemptOutcome = Outcome["status"] | "login_refused"

/** Throws 404 for a number that no attempt of the message has. */
export async function attemptOf(db: Reader, message_id: string, number: string) {
  const attempt = /^\d{1,9}$/.test(number) ? Number(number) : -1
  const one = and(eq(attempts.message_id, message_id), eq(attempts.attempt, attempt))
  const [row] = await db.select().from(attempts).where(one)
  return row ?? fail("not_found", "There is no such attempt.")
}

/** Ends a message that still waits. One that is on its way, or settled, is a 409. */
export async function cancel(tx: Tx, project_id: string, id: string) {
  const found = await find(tx, project_id, id)
  // The job first, as a claim does it, or the two might wait for each other.
  await tx.delete(jobs).where(and(eq(jobs.id, id), ne(jobs.state, LEASED)))
  const message = await hold(tx, found)
  if (message.status !== "queued") {
    fail("conflict", `The email is ${message.status}. Only a queued email can be cancelled.`, {
      reason: "not_queued",
      id,
    })
  }
  await abandon(tx, message, "cancelled", "The email was cancelled before it was sent.")
  return get(tx, project_id, id)
}

/** A new message with the frozen content of an old one: to everybody again, or to one address alone. */
export async function again(
  db: Reader,
  caller: Caller,
  id: string,
  to: Mailbox | undefined,
  idempotency_key: string | null,
): Promise<NewMessage> {
  const message = await find(db, caller.project_id, id)
  const kept = await lookupContent(db, id)
  if (!kept)
    return fail("conflict", "The content of this email is no longer stored.", {
      reason: "expired",
      id,
    })
  const wanted = to ? [{ ...to, kind: "to" as const }] : message.recipients
  const recipients = wanted.map(({ email, name, kind }) => ({ email, name, kind, ...WAITING }))
  const fresh = newId()
  return {
    ...message,
    id: fresh,
    recipient: comparable(recipients[0]?.email ?? ""),
    recipients,
    batch_id: null,
    source: "api",
    api_key_id: caller.key_id,
    sandbox: caller.project_settings.sandbox,
    idempotency_key,
    rfc_message_id: `<${fresh}@${message.sender_domain}>`,
    created_at: now(),
    content: kept,
  }
}

const WAITING = { status: "queued" as const, status_reason: null }

async function lookupContent(db: Reader, message_id: string): Promise<EmailContent | undefined> {
  const rows = db.select().from(messageContents).where(eq(messageContents.message_id, message_id))
  const [row] = await rows.orderBy(desc(messageContents.message_id)).limit(1)
  const content = row?.content as EmailContent | undefined
  if (!content || content.text !== null || content.html === null) return content
  return { ...content, text: textFromHtml(content.html) }
}
