import type { Components } from "../../src/client/components"
import { isHeld, UNCONFIRMED } from "../lib/email-text"
import { inboxState } from "../lib/inbox-text"
import { pushTitle } from "../lib/push-text"
import { personOf } from "../lib/sms-text"
import { shortId } from "../lib/table"
import { cleanLine } from "../lib/terminal"

type Email = Omit<Components["EmailSummary"], "updated_at"> & { updated_at?: string }
type EventEnvelope = Components["EventEnvelope"]

/** One message as the list shows it. Everything in it is harmless to a terminal. */
export interface MessageRow {
  id: string
  /** Epoch milliseconds. */
  created_at: number
  channel: string
  to: string
  subject: string
  status: string
  /** Of a message that waits since a restore it names the queue of held work. */
  status_reason: string
  attempts: number
  /** Of a message that waits for its time, epoch milliseconds. */
  scheduled_at: number | null
  /** Of the last status, epoch milliseconds. */
  changed_at: number
  tags: readonly string[]
  /** Name and id of its template; events do not tell them. */
  template: readonly string[]
  /** Accepted while the monitor watched: only these are counted. */
  is_new: boolean
}

/** All fields of a message, or only those that changed. */
export type RowUpdate = Partial<MessageRow> & { id: string; at: number }

/** What was seen of a message's way, as the socket tells it besides the event. */
export type ActivityFrame = {
  id: string
  channel: string
  status: string
  status_reason: string | null
  recipient: string
  next_attempt_at: string | null
  at: string
  event_type: string | null
}

export const MOST_ROWS = 10_000
const LONGEST = 300

const clean = (value: unknown): string =>
  typeof value === "string" ? cleanLine(value.slice(0, LONGEST)) : ""

const timeOf = (iso: string): number => Date.parse(iso)

const rank: Partial<Record<string, number>> = {
  queued: 0,
  sending: 1,
  sent: 2,
  delivered: 3,
  received: 4,
  undelivered: 4,
  expired: 4,
  cancelled: 4,
  failed: 4,
  bounced: 5,
  complained: 6,
}

/** Types of events that say a status; the others leave it as it is. */
const told: Partial<Record<string, string>> = {
  "email.queued": "queued",
  "email.sent": "sent",
  "email.delivered": "delivered",
  "email.bounced": "bounced",
  "email.soft_bounced": "queued",
  "email.complained": "complained",
  "email.failed": "failed",
  "sms.queued": "queued",
  "sms.sent": "sent",
  "sms.delivered": "delivered",
  "sms.undelivered": "undelivered",
  "sms.failed": "failed",
  "sms.received": "received",
  "push.sent": "sent",
  "push.delivered": "delivered",
  "push.failed": "failed",
  "push.expired": "expired",
  "inbox.created": "unseen",
  "inbox.seen": "seen",
  "inbox.read": "read",
  "inbox.archived": "archived",
  "inbox.expired": "expired",
}

export function updateOfEmail(email: Email): RowUpdate {
  return {
    id: clean(email.id),
    at: timeOf(email.updated_at ?? email.created_at),
    created_at: timeOf(email.created_at),
    channel: "email",
    to: clean(email.to.email),
    subject: clean(email.subject),
    status: clean(email.status),
    status_reason: clean(email.status_reason),
    attempts: email.attempts,
    scheduled_at: waitsUntil(email),
    tags: tagsOf(email.tags),
    template: email.template ? [clean(email.template.name), clean(email.template.id)] : [],
  }
}

/** Before its first event a scheduled email waits for its time. */
const waitsUntil = ({ scheduled_at, last_event }: Email): number | null =>
  scheduled_at && !last_event ? timeOf(scheduled_at) : null

/** The list of texts says neither why nor how often. */
export const updateOfText = (text: Components["SmsSummary"]): RowUpdate => ({
  id: clean(text.id),
  at: timeOf(text.sent_at ?? text.created_at),
  created_at: timeOf(text.created_at),
  channel: "sms",
  to: clean(personOf(text)),
  subject: clean(text.body),
  status: clean(text.status),
})

/** Its address is the device. The list says neither why nor how often. */
export const updateOfPush = (message: Components["PushSummary"]): RowUpdate => ({
  id: clean(message.id),
  at: timeOf(message.delivered_at ?? message.sent_at ?? message.created_at),
  created_at: timeOf(message.created_at),
  channel: "push",
  to: clean(message.device_id),
  subject: clean(pushTitle(message)),
  status: clean(message.status),
  tags: tagsOf(message.tags),
})

/** The list says whose inbox it is by the id of the server alone. */
export const updateOfInbox = (message: Components["InboxMessage"]): RowUpdate => ({
  id: clean(message.id),
  at: timeOf(message.updated_at),
  created_at: timeOf(message.created_at),
  channel: "in_app",
  to: UNNAMED + shortId(clean(message.subscriber_id)),
  subject: clean(message.title),
  status: inboxState(message),
  tags: tagsOf(message.tags),
})

/** What stands before the end of an id, where the name of its subscriber is not known. */
const UNNAMED = "…"

/** Undefined for events that are not about a message: those of `belfry trigger` too. */
export function updateOfEvent({ type, data, created_at }: EventEnvelope): RowUpdate | undefined {
  const group = type.split(".")[0] ?? ""
  const channel = group === "inbox" ? "in_app" : group
  const read = CHANNELS[channel]
  if (!read || type === "email.received") return undefined
  const { id, to, subject } = read(data, type)
  if (typeof id !== "string" || data.simulated === true) return undefined
  const { tags, bounce_subtype } = data
  const status = told[type]
  return {
    id: clean(id),
    at: timeOf(typeof data.timestamp === "string" ? data.timestamp : created_at),
    channel,
    ...(typeof to === "string" ? { to: clean(to) } : {}),
    ...(typeof subject === "string" ? { subject: clean(subject) } : {}),
    ...(Array.isArray(tags) ? { tags: tagsOf(tags) } : {}),
    ...(status === undefined ? {} : { status }),
    ...(typeof bounce_subtype === "string" ? { status_reason: clean(bounce_subtype) } : {}),
  }
}

type EventData = EventEnvelope["data"]
type Named = Record<"id" | "to" | "subject", unknown>

/** Which fields of an event tell what of its message. */
const CHANNELS: Partial<Record<string, (data: EventData, type: string) => Named>> = {
  email: (data) => ({ id: data.message_id, to: data.recipient_email, subject: data.subject }),
  sms: (data, type) => ({ id: data.sms_message_id, to: personIn(type, data), subject: data.body }),
  push: (data) => ({ id: data.push_message_id, to: data.device_id, subject: undefined }),
  in_app: (data) => ({ id: data.inbox_message_id, to: data.external_id, subject: undefined }),
}

const personIn = (type: string, { to, from }: EventData): string =>
  personOf({
    direction: type === "sms.received" ? "inbound" : "outbound",
    to: String(to ?? ""),
    from: String(from ?? ""),
  })

export const updateOfActivity = (activity: ActivityFrame): RowUpdate => ({
  id: clean(activity.id),
  at: timeOf(activity.at),
  channel: clean(activity.channel),
  ...(activity.channel === "in_app"
    ? inboxActivity(activity)
    : {
        to: clean(activity.recipient),
        status: clean(activity.status),
      }),
  ...(activity.status_reason === null ? {} : { status_reason: clean(activity.status_reason) }),
  ...(isAccepted(activity) && { scheduled_at: timeOf(activity.next_attempt_at ?? "") }),
})

/** Of a message in an inbox the event says what its status does not, and its address is an id of the server. */
function inboxActivity({ event_type, recipient }: ActivityFrame) {
  const status = told[event_type ?? ""]
  return { to: UNNAMED + shortId(clean(recipient)), ...(status !== undefined && { status }) }
}

/**
 * An accepted message with a next attempt has a time that somebody chose: it was neither tried nor held. A text
 * has its event at once.
 */
const isAccepted = ({ status, status_reason, event_type, next_attempt_at }: ActivityFrame) =>
  status === "queued" &&
  status_reason === null &&
  (event_type === null || event_type === "sms.queued") &&
  next_attempt_at !== null

const tagsOf = (tags: unknown): string[] => (Array.isArray(tags) ? tags.map(clean) : [])

/** Milliseconds in the first 48 bits of a UUIDv7 (RFC 9562, 5.7): when the message was accepted. */
const madeAt = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)

/** What became of messages that were accepted meanwhile, each told once however often it was said. */
interface RowCounts {
  added: number
  /** Messages that were sent, delivered, or refused by the receiving side. */
  settled: number
  bounced: number
  complained: number
}

interface Merged {
  rows: readonly MessageRow[]
  counts: RowCounts
}

/**
 * The rows with what is said now, newest first, at most `MOST_ROWS`. Facts may come twice and late:
 * a status never falls back, except from `sending` to `queued` for the next try.
 */
export function mergeUpdates(
  rows: readonly MessageRow[],
  facts: readonly RowUpdate[],
  are_news = true,
): Merged {
  const next = rows.slice()
  const fresh = new Map<string, MessageRow>()
  const counts = { added: 0, settled: 0, bounced: 0, complained: 0 }
  for (const fact of facts) {
    const at = positionOf(next, fact.id)
    const known = next[at]?.id === fact.id ? next[at] : fresh.get(fact.id)
    const before = known ?? begun(fact, are_news && fact.status !== "received")
    const after = merged(before, fact)
    if (!known && after.is_new) counts.added += 1
    if (after.is_new) count(counts, before.status, after.status)
    if (known && next[at] === known) next[at] = after
    else fresh.set(fact.id, after)
  }
  if (fresh.size === 0) return { rows: next, counts }
  const newer = [...fresh.values()].sort(byId)
  const all = isInFront(newer, next) ? newer.concat(next) : newer.concat(next).sort(byId)
  return { rows: all.slice(0, MOST_ROWS), counts }
}

const JUST_NOW = 60_000
const out = ["sent", "delivered", "bounced", "complained"]

function count(counts: RowCounts, before: string, after: string): void {
  if (before === after) return
  if (out.includes(after) && !out.includes(before)) counts.settled += 1
  if (after === "bounced") counts.bounced += 1
  if (after === "complained") counts.complained += 1
}

const byId = (one: MessageRow, other: MessageRow) => (one.id < other.id ? 1 : -1)

const isInFront = (newer: readonly MessageRow[], rows: readonly MessageRow[]) =>
  (newer.at(-1)?.id ?? "") > (rows[0]?.id ?? "")

/** Where the id is, or would be: rows are sorted by falling id. */
function positionOf(rows: readonly { id: string }[], id: string): number {
  let low = 0
  let high = rows.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((rows[middle]?.id ?? "") > id) low = middle + 1
    else high = middle
  }
  return low
}

function begun({ id, at }: RowUpdate, is_news: boolean): MessageRow {
  const made = madeAt(id)
  const created_at = Number.isFinite(made) ? made : at
  const text = { channel: "email", to: "", subject: "", status: "", status_reason: "" }
  const blank = { ...text, tags: [], template: [], scheduled_at: null }
  const is_new = is_news && at - created_at < JUST_NOW
  return { ...blank, id, created_at, attempts: 0, changed_at: created_at, is_new }
}

function merged(row: MessageRow, { at, attempts, status, ...fact }: RowUpdate): MessageRow {
  const is_unnamed = fact.to?.startsWith(UNNAMED) && row.to !== ""
  const moves =
    status !== undefined &&
    (fact.channel === "in_app" ? at >= row.changed_at : mayFollow(row.status, status))
  const tries = moves ? Math.max(row.attempts, triesAfter(row, status)) : row.attempts
  return {
    ...row,
    ...fact,
    ...(is_unnamed && { to: row.to }),
    status_reason: moves ? (fact.status_reason ?? reasonAfter(row, status)) : row.status_reason,
    status: moves ? status : row.status,
    changed_at: moves && status !== row.status ? at : row.changed_at,
    attempts: Math.max(attempts ?? 0, tries),
  }
}

/** What is held or unconfirmed stays so until it moves: lists of texts and push messages do not say it again. */
const reasonAfter = ({ status_reason }: MessageRow, status: string): string =>
  (status === "queued" && isHeld(status_reason)) ||
  (status === "sent" && status_reason === UNCONFIRMED)
    ? status_reason
    : ""

function mayFollow(before: string, status: string): boolean {
  if (before === "sending" && status === "queued") return true
  return (rank[status] ?? 0) >= (rank[before] ?? -1)
}

function triesAfter({ status: before, attempts }: MessageRow, status: string): number {
  if (status === "sending" && before !== "sending") return attempts + 1
  return ["sent", "delivered", "undelivered", "bounced"].includes(status)
    ? Math.max(1, attempts)
    : attempts
}

/** What was seen since the monitor began: messages a second, and how they ended. */
export interface Rates {
  /** Messages that were new in each second, the oldest first; the last one is not over yet. */
  seconds: readonly number[]
  /** The second of the last of them. */
  second: number
  settled: number
  bounced: number
  complained: number
}

const KEPT_SECONDS = 60
const MEAN_SECONDS = 5

export const NO_RATES: Rates = { seconds: [0], second: 0, settled: 0, bounced: 0, complained: 0 }

/** Brings the seconds up to now; those in which nothing came are zeros. */
export function upTo(rates: Rates, now: number): Rates {
  const second = Math.floor(now / 1000)
  const gone = rates.second === 0 ? 0 : Math.min(KEPT_SECONDS, second - rates.second)
  if (gone <= 0) return rates.second === 0 ? { ...rates, second } : rates
  const zeros = Array.from({ length: gone }, () => 0)
  return { ...rates, second, seconds: [...rates.seconds, ...zeros].slice(-KEPT_SECONDS) }
}

/** Adds what has just been seen to the second that runs. */
export function counted(rates: Rates, more: RowCounts, now: number): Rates {
  const { seconds, ...rest } = upTo(rates, now)
  const last = seconds.at(-1) ?? 0
  return {
    ...rest,
    seconds: [...seconds.slice(0, -1), last + more.added],
    settled: rest.settled + more.settled,
    bounced: rest.bounced + more.bounced,
    complained: rest.complained + more.complained,
  }
}

/** The mean of the last whole seconds: one that has just begun says nothing. */
export function perSecond({ seconds }: Rates): number {
  const whole = seconds.slice(0, -1).slice(-MEAN_SECONDS)
  if (whole.length === 0) return seconds.at(-1) ?? 0
  return whole.reduce((sum, one) => sum + one, 0) / whole.length
}
