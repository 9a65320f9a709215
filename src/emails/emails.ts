import { and, desc, eq, exists, isNotNull, or, type SQL, sql } from "drizzle-orm"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import * as feed from "../events/feed"
import type { Page } from "../http/page"
import { changeUnclaimed } from "../jobs/claims"
import { partOf } from "../lib/text"
import { isShared, type SharedContent } from "../messages/contents"
import { isOpen, type Message } from "../messages/facts"
import { keepsContent } from "../messages/message-retention"
import { messageRows } from "../messages/pipeline"
import { cancel as cancelMessage } from "../messages/settle"
import { asTheyStand, hasStatus, isClaimed } from "../messages/standing"
import {
  attempts,
  messageContents,
  messageRaws,
  messages,
  messageTags,
  type Status,
  type Stream,
} from "../messages/tables"
import { settledCounters } from "../messages/transitions"
import type { Outcome } from "../providers/provider"
import { totals } from "../store/counters"
import { eqUnindexed, isAskedId } from "../store/dialect"
import {
  type BoundedList,
  boundedList,
  countAlong,
  countUpTo,
  type IdSource,
  idsBetween,
  type ListWindow,
  oldestFirst,
  timesBetween,
} from "../store/rows"
import type { Reader, Store } from "../store/store"
import { summaries } from "../tracking/tracking"
import { type SharedParts, sharedAgain } from "./compose-email"
import { eventEntry, listed, whole } from "./email-record"
import {
  type EmailContent,
  type FiledContent,
  isFiled,
  isSubmitted,
  type SubmittedContent,
  textsOf,
} from "./filed-content"

import { isRendered, renderShared, type SharedRules } from "./shared-email"
import { fileOf, keptBytes, partsOf } from "./submitted"
import { textOfHtml } from "./text-of-html"

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

/** What reads messages, and takes those apart that came as bytes. */
export interface EmailReading extends Omit<SharedParts, "rules"> {
  store: Pick<Store, "read">
  rules: SharedRules
}

/** The whole record. */
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

export async function content(reading: EmailReading, project_id: string, id: string) {
  const message = await find(reading.store.read, project_id, id)
  const kept =
    (await readContent(reading, message)) ??
    fail("not_found", CONTENT_GONE, { reason: "retention_over" })
  const { html, text, headers } = kept
  return { subject: message.subject as string, html, text, headers }
}

/** The bytes that were handed over. There are none before the first attempt, and none of mail that was not sent. */
export async function raw(reading: EmailReading, project_id: string, id: string) {
  const { store, blobs } = reading
  const message = await find(store.read, project_id, id)
  const [row] = await store.read.select().from(messageRaws).where(eq(messageRaws.message_id, id))
  if (row && message.fan_out_id === null) return keptBytes(message, row.raw, blobs)
  if (row) return sharedRaw(reading, message, row.raw)
  if (!(await keepsContent(store.read, id)))
    return fail("not_found", CONTENT_GONE, { reason: "retention_over" })
  if (!isOpen(message.status))
    return fail("not_found", "The message was not sent, so there are no bytes.", {
      reason: "not_sent",
    })
  return fail("not_found", "The message has not been composed yet. Try again in a few seconds.")
}

async function sharedRaw(reading: EmailReading, message: Message, kept: Buffer) {
  const content = await lookupStored(reading.store.read, message.id)
  if (!isShared(content)) return fail("not_found", CONTENT_GONE, { reason: "retention_over" })
  const bytes = await sharedAgain(reading, message, content, kept)
  return bytes instanceof Uint8Array ? bytes : fail("internal_error", bytes.reason)
}

export async function attachment(reading: EmailReading, project_id: string, ids: FileIds) {
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
  return isSubmitted(stored) ? fileOf(workers, message, stored, { number, blobs }) : undefined
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
  const total = () => countAlong(db, { rows: attempts, id: attempts.attempt, where: ours })
  return { rows, total }
}

/** `login_refused` says that the provider refused our credentials. */
type AttemptOutcome = Exclude<Outcome["status"], "expired"> | "login_refused"

/** Throws 404 for a number that no attempt of the message has. */
export async function attemptOf(db: Reader, message_id: string, number: string) {
  const attempt = /^\d{1,9}$/.test(number) ? Number(number) : -1
  const one = and(eq(attempts.message_id, message_id), eq(attempts.attempt, attempt))
  const [row] = await db.select().from(attempts).where(one)
  return row ?? fail("not_found", "There is no such attempt.")
}

/** Ends a message that still waits. One that is on its way, or settled, is a 409. */
export async function cancel(store: Store, project_id: string, id: string): Promise<void> {
  await find(store.read, project_id, id)
  await changeUnclaimed(store, messageRows, [id], async (tx, [unclaimed]) => {
    const message = await find(tx, project_id, id)
    const status = unclaimed || message.status !== "queued" ? message.status : "sending"
    if (status !== "queued") {
      fail("conflict", `The email is ${status}. Only a queued email can be cancelled.`, {
        reason: "not_queued",
        id,
      })
    }
    await cancelMessage(tx, message, "The email was cancelled before it was sent.")
  })
}

async function lookupStored(db: Reader, message_id: string) {
  const rows = db.select().from(messageContents).where(eq(messageContents.message_id, message_id))
  const [row] = await rows.orderBy(desc(messageContents.message_id)).limit(1)
  return row?.content as EmailContent | FiledContent | SubmittedContent | SharedContent | undefined
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
  const led = await linksLead(store.read, message)
  const address = led ?? (await rules.publicAddress(project_id, sender_domain))
  const rendered = await renderShared(rules, message, stored, address || undefined)
  return isRendered(rendered) ? rendered : UNRENDERED
}

/** Of a mail that failed because its texts could not be rendered. */
const UNRENDERED: EmailContent = { html: null, text: null, headers: {} }

/** Where the links of a mail lead that left already, empty where nowhere; undefined where none did. */
async function linksLead(db: Reader, { id }: Message): Promise<string | undefined> {
  const [row] = await db.select().from(messageRaws).where(eq(messageRaws.message_id, id))
  return row?.raw.toString("utf8", 0, row.raw.indexOf("\n"))
}

/** The content for people; undefined where it is no longer stored. */
async function readContent(reading: EmailReading, message: Message) {
  const { workers, blobs } = reading
  const stored = await lookupContent(reading, message)
  if (!stored) return undefined
  const content = isSubmitted(stored) ? await partsOf(workers, message, stored, blobs) : stored
  if (content.text !== null || content.html === null) return content
  return { ...content, text: await textOfHtml(workers, content.html) }
}

/** Addresses and the domain in the form in which they compare. */
export interface EmailFilter {
  status?: Status | undefined
  to?: string | undefined
  from?: string | undefined
  tag?: string | undefined
  domain?: string | undefined
  subject?: string | undefined
  stream?: Stream | undefined
  batch_id?: string | undefined
  template_id?: string | undefined
  /** With those that were merged into the subscriber. */
  subscriber_ids?: string[] | undefined
  category?: string | undefined
  after: string | undefined
  before: string | undefined
}

/** The project's emails, newest first: ids rise with time, so the index is walked backwards. */
export async function list(
  db: Reader,
  project_id: string,
  filter: EmailFilter,
  window: ListWindow,
) {
  const place = placeOf(db, project_id, filter)
  const found = boundedList<Message>(db, { owner: project_id, table: messages, ...place })
  const { rows, end } = await found.list(window)
  const total = () => countEmails(db, project_id, filter, found.total)
  const waiting = await asTheyStand(db, rows)
  const hits = await summaries(db, waiting)
  const shown = waiting.map((message) => listed(message, hits.get(message.id)))
  return { rows: shown, end, total } satisfies Page<object>
}

/** The index of one filter, the narrowest as a rule, and what it does not know. */
function placeOf(db: Reader, project_id: string, filter: EmailFilter): EmailPlace {
  const { to, subscriber_ids = [], template_id, tag, status } = filter
  const within = idsBetween(messages.id, filter)
  const along = (...indexed: (SQL | undefined)[]): IdSource => ({
    rows: messages,
    id: messages.id,
    where: and(eq(messages.project_id, project_id), ...indexed, within),
  })
  const rest = (known: Partial<EmailFilter>) =>
    and(OF_CHANNEL, conditionsOf(db, project_id, { ...filter, ...known }))
  const [subscriber, ...merged] = subscriber_ids
  if (status === "sending") {
    return { along: beingSent(db, project_id), filter: rest({ status: undefined }) }
  }
  if (to !== undefined) {
    return { along: along(eq(messages.address, to)), filter: rest({ to: undefined }) }
  }
  if (subscriber !== undefined && merged.length === 0) {
    const own = ofSubscribers(subscriber_ids)
    return { along: along(own), filter: rest({ subscriber_ids: undefined }) }
  }
  if (template_id !== undefined) {
    return { along: along(ofTemplate(template_id)), filter: rest({ template_id: undefined }) }
  }
  if (tag !== undefined) {
    return { along: taggedWith(project_id, tag, filter), filter: rest({ tag: undefined }) }
  }
  if (status === undefined) {
    return { along: along(OF_CHANNEL), filter: conditionsOf(db, project_id, filter) }
  }
  // A claim is not in the index.
  const known = status === "queued" ? {} : { status: undefined }
  return { along: along(eq(messages.status, status)), filter: rest(known) }
}

type EmailPlace = Pick<BoundedList<Message>, "along" | "filter">

const OF_CHANNEL = eq(messages.channel, "email")

function conditionsOf(db: Reader, project_id: string, filter: EmailFilter): SQL | undefined {
  const { status, to, from, tag, domain, subject, stream, batch_id } = filter
  return and(
    status && hasStatus(db, status),
    to === undefined ? undefined : eq(messages.address, to),
    from === undefined ? undefined : eq(messages.sender, from),
    domain === undefined ? undefined : eq(messages.sender_domain, domain),
    subject === undefined ? undefined : contains(subject),
    stream && eq(messages.stream, stream),
    batch_id === undefined ? undefined : isAskedId(messages.batch_id, batch_id),
    filter.template_id === undefined ? undefined : ofTemplate(filter.template_id),
    filter.subscriber_ids === undefined ? undefined : ofSubscribers(filter.subscriber_ids),
    filter.category === undefined ? undefined : eq(messages.category, filter.category),
    tag === undefined ? undefined : exists(tagged(db, project_id, tag)),
    timesBetween(messages.created_at, filter),
  )
}

/** As text of its own, the condition lets both engines take the partial index. */
const ofTemplate = (id: string) =>
  and(isAskedId(messages.template_id, id), isNotNull(messages.template_id))

const ofSubscribers = (ids: string[]) =>
  and(
    or(...ids.map((id) => isAskedId(messages.subscriber_id, id))),
    isNotNull(messages.subscriber_id),
  )

const contains = (text: string) => sql`${messages.subject_key} LIKE ${partOf(text)} ESCAPE '\\'`

const ofTag = (project_id: string, tag: string) =>
  and(eq(messageTags.project_id, project_id), eq(messageTags.tag, tag))

const taggedWith = (project_id: string, tag: string, times: EmailFilter): IdSource => ({
  rows: messageTags,
  id: messageTags.message_id,
  where: and(ofTag(project_id, tag), idsBetween(messageTags.message_id, times)),
})

const tagged = (db: Reader, project_id: string, tag: string) =>
  db
    .select({ one: sql`1` })
    .from(messageTags)
    .where(and(ofTag(project_id, tag), eq(messageTags.message_id, messages.id)))

/** No more than the nodes deliver at once. Where their ids are in memory, no index of the project is faster. */
function beingSent(db: Reader, project_id: string): IdSource {
  const ours = eqUnindexed(db, messages.project_id, project_id)
  return { rows: messages, id: messages.id, where: and(isClaimed(db), ours) }
}

/** Far more than the nodes deliver at once. */
const MOST_IN_FLIGHT = 10_000

const SETTLED = settledCounters("email")

/** From the counters where they know it. */
async function countEmails(
  db: Reader,
  project_id: string,
  filter: EmailFilter,
  counted: () => Promise<number | null>,
) {
  const names = Object.entries(filter).filter(([, value]) => value !== undefined)
  const only = names.length === 1 ? filter.status : undefined
  if ((names.length > 0 && !only) || only === "sending") return counted()

  const sums = await totals(db, project_id, ["email", ...SETTLED])
  if (!only) return sums.get("email") ?? 0
  const settled = sums.get(`email.${only}`)
  if (settled !== undefined) return settled
  const sent_now = beingSent(db, project_id)
  const in_flight = await countUpTo(db, sent_now, MOST_IN_FLIGHT)
  const done = SETTLED.reduce((sum, name) => sum + (sums.get(name) ?? 0), 0)
  return Math.max(0, (sums.get("email") ?? 0) - done - in_flight)
}
