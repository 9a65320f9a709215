import type { Static } from "@sinclair/typebox"
import { eq } from "drizzle-orm"
import { fail } from "../core/errors"
import type { Workers } from "../core/workers"
import type { Event } from "../events/feed"
import * as feed from "../events/feed"
import { fieldsOf } from "../lib/record-fields"
import { textFromHtml } from "../lib/text-from-html"
import { isShared } from "../messages/contents"
import * as messageList from "../messages/message-list"
import {
  asTheyStand,
  lookupIn,
  type MessageListFilter,
  type MessageView,
} from "../messages/message-list"
import { keepsContent } from "../messages/message-retention"
import { cancelQueued } from "../messages/scheduled"
import { readableOf } from "../messages/sealed-contents"
import { AUTH_SOURCE, isOpen, isScheduled, type Message } from "../messages/status-changes"
import { type LeftOut, messageContents } from "../messages/tables"
import { NO_REPLY } from "../providers/provider"
import type { ListWindow } from "../store/rows"
import type { Reader, Store } from "../store/store"
import { type HitSummary, NO_HITS, summaries } from "../tracking/tracking"
import {
  bytesAgain,
  findRaw,
  named,
  rulesThen,
  type SharedParts,
  type StoredContent,
  shownAgain,
} from "./compose-email"
import {
  type EmailContent,
  isFiled,
  isSubmitted,
  type SubmittedContent,
  textsOf,
} from "./filed-content"
import type { ReadParts } from "./parts-task"
import { recipeIn } from "./recipe"
import { EmailEvent, ListedEmail } from "./schemas"
import { isRendered, type NoBytes, renderShared, type SharedRules } from "./shared-email"
import { placeOf } from "./submitted"

const gone = () => fail("not_found", "There is no such email.")

/** A message of the project, or 404: an absent one and a foreign one answer alike. */
export async function find(db: Reader, project_id: string, id: string): Promise<Message> {
  return (await lookupIn(db, { project_id, channel: "email" }, id)) ?? gone()
}

/** What reads messages, and takes those apart that came as bytes. */
export interface EmailReading extends Omit<SharedParts, "rules"> {
  store: Pick<Store, "read">
  rules: SharedRules
}

export async function get(reading: EmailReading, project_id: string, id: string) {
  const db = reading.store.read
  const row = await find(db, project_id, id)
  const [message] = await asTheyStand(db, [row])
  if (!message) return gone()
  const content = await readContent(reading, row)
  const hits = (await summaries(db, [message])).get(id)
  return whole(message, content, await feed.about(db, project_id, id), hits)
}

export async function events(db: Reader, project_id: string, id: string) {
  const { status } = await find(db, project_id, id)
  const story = await feed.about(db, project_id, id)
  return { email_id: id, status, events: story.map(eventEntry) }
}

/** Why there is no content: reads and resends say it. */
export const CONTENT_GONE =
  "The content of this email is no longer stored. Its retention time is over."

const contentGone = () => fail("not_found", CONTENT_GONE, { reason: "retention_over" })

export async function content(reading: EmailReading, project_id: string, id: string) {
  const message = await find(reading.store.read, project_id, id)
  const kept = (await readContent(reading, message)) ?? contentGone()
  const { html, text, headers } = kept
  return { subject: message.subject as string, html, text, headers }
}

/** The bytes that were handed over. There are none before the first attempt, and none of mail that was not sent. */
export async function raw(reading: EmailReading, project_id: string, id: string) {
  const { store } = reading
  const message = await find(store.read, project_id, id)
  const [row] = await findRaw(store.read, { message_id: id })
  if (row) {
    const content = (await lookupStored(store.read, id)) ?? contentGone()
    return bytesIn(await bytesAgain(reading, message, content, row.raw))
  }
  if (message.source === AUTH_SOURCE && message.provider !== null && !isOpen(message.status))
    return shownRaw(reading, message)
  if (!(await keepsContent(store.read, id))) return contentGone()
  if (isOpen(message.status)) return fail("not_found", NOT_COMPOSED)
  return fail("not_found", NOT_SENT, { reason: "not_sent" })
}

/** The bytes of a sign-in mail are not kept: they show its code or link. */
async function shownRaw(reading: EmailReading, message: Message) {
  const content = (await lookupContent(reading, message)) ?? contentGone()
  return bytesIn(await shownAgain(reading, message, content as EmailContent))
}

const bytesIn = (made: Uint8Array | NoBytes) =>
  made instanceof Uint8Array ? made : fail("internal_error", made.reason)

const NOT_SENT = "The message was not sent, so there are no bytes."
const NOT_COMPOSED = "The message has not been composed yet. Try again in a few seconds."

export async function attachment(
  reading: EmailReading,
  project_id: string,
  ids: { email_id: string; attachment_id: string },
) {
  const message = await find(reading.store.read, project_id, ids.email_id)
  const files = message.envelope?.attachments ?? []
  const number = files.findIndex(({ id }) => id === ids.attachment_id)
  const row = files[number]
  const bytes = row && (await bytesOfFile(reading, message, { ...row, number }))
  if (!row || !bytes) return fail("not_found", "There is no such attachment.")
  return { ...row, bytes }
}

async function bytesOfFile(
  { store, workers, blobs }: EmailReading,
  message: Message,
  { sha256, number }: { sha256: string; number: number },
): Promise<Uint8Array | undefined> {
  if (!message.envelope?.submitted) {
    // The file may be another message's, too.
    return (await keepsContent(store.read, message.id)) ? blobs.get(sha256) : undefined
  }
  const stored = await lookupStored(store.read, message.id)
  if (!isSubmitted(stored)) return undefined
  const file = { place: placeOf(message, stored, blobs), number }
  return workers.run<Uint8Array | undefined>("read-file", file, READING)
}

/** Ends an email that still waits. One that is on its way, or settled, is a 409. */
export async function cancel(store: Store, project_id: string, id: string): Promise<void> {
  await find(store.read, project_id, id)
  await cancelQueued(store, (tx) => find(tx, project_id, id), "email", id)
}

async function lookupStored(db: Reader, message_id: string) {
  const one = eq(messageContents.message_id, message_id)
  const [row] = await db.select().from(messageContents).where(one)
  return readableOf(row?.content) as StoredContent | undefined
}

/** The content of a message alone, whether or not its texts are stored once for many. Undefined where it is gone. */
export async function lookupContent(
  { store, rules, blobs }: Pick<EmailReading, "store" | "rules" | "blobs">,
  message: Message,
): Promise<EmailContent | SubmittedContent | undefined> {
  const stored = await lookupStored(store.read, message.id)
  if (stored && isFiled(stored)) {
    const bytes = await blobs.get(stored.file)
    return bytes && { ...textsOf(bytes), headers: stored.headers }
  }
  if (!isShared(stored)) return stored
  const { project_id, sender_domain } = message
  const [row] = await findRaw(store.read, { message_id: message.id })
  const left = row && recipeIn(row.raw, true)
  const address = left ? left.address : await rules.publicAddress(project_id, sender_domain)
  const rendered = await renderShared(rulesThen(rules, left), message, stored, address)
  return isRendered(rendered) ? rendered : UNRENDERED
}

/** Of a mail that failed because its texts could not be rendered. */
const UNRENDERED: EmailContent = { html: null, text: null, headers: {} }

/** The content for people; undefined where it is no longer stored. */
async function readContent(reading: EmailReading, message: Message) {
  const { workers, blobs } = reading
  const stored = await lookupContent(reading, message)
  if (!stored) return undefined
  const content = isSubmitted(stored)
    ? await workers.run<ReadParts>("read-parts", placeOf(message, stored, blobs), READING)
    : stored
  if (content.text !== null || content.html === null) return content
  return { ...content, text: await textOfHtml(workers, content.html) }
}

export const list = (
  db: Reader,
  project_id: string,
  filter: MessageListFilter,
  window: ListWindow,
) =>
  messageList.list(db, { project_id, channel: "email" }, filter, window, async (rows) => {
    const hits = await summaries(db, rows)
    return rows.map((message) => listed(message, hits.get(message.id)))
  })

/** What is larger is read in a worker: some megabytes would hold all other requests for seconds. */
const MOST_READ_HERE = 32 * 1024
const READING = { deadline_ms: 10_000 }

/** The text that a mail without one gets from its html. */
export const textOfHtml = async (workers: Pick<Workers, "run">, html: string): Promise<string> =>
  html.length <= MOST_READ_HERE
    ? textFromHtml(html)
    : workers.run<string>("text-from-html", html, READING)

/** The Email record as lists show it: everything but bodies, headers and timeline. */
function listed(message: MessageView, hits: HitSummary = NO_HITS) {
  const { envelope } = message
  const [to] = message.recipients
  return fieldsOf(ListedEmail, {
    ...message,
    ...certain(message),
    to: { email: to?.email ?? "", name: to?.name ?? null },
    cc: named(message.recipients, "cc"),
    bcc: named(message.recipients, "bcc"),
    recipients: [
      ...message.recipients.map(({ name: _, ...recipient }) => recipient),
      ...(envelope?.left_out ?? []).map(leftOut),
    ],
    reply_to: envelope?.reply_to ?? [],
    attachments: (envelope?.attachments ?? []).map(({ content_id: _, ...file }) => file),
    track_opens: envelope?.track?.opens ?? false,
    track_clicks: envelope?.track?.clicks ?? false,
    ...hits,
    last_event: lastEvent(message, hits),
    queued_at: queuedAt(message),
    category: envelope?.category ?? null,
    template: envelope?.template ?? null,
    thread_id: message.thread_id ?? message.id,
  })
}

const leftOut = ({ email, kind }: LeftOut) => ({
  email,
  kind,
  status: "failed" as const,
  status_reason: "suppressed_recipient",
})

/** Hits never touch the row of the message, so the last one of a person is compared here. */
function lastEvent({ last_event_type, last_event_at }: MessageView, hits: HitSummary) {
  const events = [
    { type: last_event_type, timestamp: last_event_at },
    { type: "email.opened", timestamp: hits.last_opened_at },
    { type: "email.clicked", timestamp: hits.last_clicked_at },
  ]
  let last: { type: string; timestamp: string } | null = null
  for (const { type, timestamp } of events) {
    if (type && timestamp && (!last || timestamp >= last.timestamp)) last = { type, timestamp }
  }
  return last
}

type Certain = Pick<Static<typeof ListedEmail>, "rfc_message_id" | "subject" | "source" | "from">

/** What every email has, though a message of another channel may not. */
const certain = ({ rfc_message_id, subject, source, envelope }: MessageView) =>
  ({ rfc_message_id, subject, source, from: envelope?.from ?? null }) as Certain

/** When the email was released to be sent; null before that, and for one that was cancelled before it. */
function queuedAt(message: MessageView): string | null {
  const { scheduled_at, created_at, updated_at, status } = message
  if (scheduled_at === null) return created_at
  const was_cancelled = status === "failed" && updated_at < scheduled_at
  return isScheduled(message) || was_cancelled ? null : scheduled_at
}

/** The whole record, with bodies and timeline. Bodies are null once they are no longer kept. */
export const whole = (
  message: MessageView,
  content: EmailContent | undefined,
  story: Event[],
  hits: HitSummary | undefined,
) => ({
  ...listed(message, hits),
  html: content?.html ?? null,
  text: content?.text ?? null,
  headers: content?.headers ?? {},
  timeline: story.map(timelineEntry),
})

function timelineEntry({ type, created_at, data, detail }: Event) {
  const { recipient_email = null, timestamp = created_at } = data as Partial<EventEntry>
  return { type, timestamp, recipient_email, detail: detail ?? null }
}

type EventEntry = Static<typeof EmailEvent>

/** One entry of EmailEvents; `type` is the webhook type. */
const eventEntry = ({ id, type, created_at: timestamp, data, detail }: Event) =>
  fieldsOf(EmailEvent, {
    ...{ timestamp, recipient_email: null, bounce_type: null, bounce_subtype: null },
    ...{ complaint_feedback_type: null, url: null, user_agent: null, actor: null },
    ...(data as Partial<EventEntry>),
    ...{ id, type, detail: detail ?? NO_REPLY },
  })
