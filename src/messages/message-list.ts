import { and, desc, eq, exists, inArray, isNotNull, ne, or, type SQL, sql } from "drizzle-orm"
import { fail } from "../core/errors"
import type { Page } from "../http/page"
import { heldFor } from "../jobs/holds"
import { inFlightOf } from "../jobs/in-flight"
import { HELD, LEASED, RESTORE_HOLD, RESTORE_REASON, type WorkColumns } from "../jobs/work-item"
import { isLeased } from "../jobs/work-rows"
import { partOf } from "../lib/text"
import { kindOf, type Outcome } from "../providers/provider"
import { refusalFor, waitingReason } from "../providers/routing"
import { eqUnindexed, isAmong, isAskedId } from "../store/columns"
import { totals } from "../store/counters"
import {
  type BoundedList,
  boundedList,
  countAlong,
  countUpTo,
  type IdSource,
  idsBetween,
  type ListWindow,
  oldestFirst,
  rowById,
  timesBetween,
} from "../store/rows"
import type { Reader } from "../store/store"
import { templates } from "../templates/tables"
import { counterOf, isOpen, type Message, nextAttemptAt, settledCounters } from "./status-changes"
import {
  attempts,
  type ChannelName,
  messages,
  messageTags,
  type Status,
  type Stream,
} from "./tables"

interface ChannelScope {
  project_id: string
  channel: ChannelName
}

/** The message with this id; undefined for an absent one and for a foreign one alike. */
export function lookupIn(db: Reader, { project_id, channel }: ChannelScope, id: string) {
  const ours = and(eq(messages.project_id, project_id), eq(messages.channel, channel))
  return rowById(db, messages, id, ours)
}

/** Oldest first. An attempt's id in a page is its number. */
export async function attemptsOf(db: Reader, id: string, window: ListWindow) {
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

/** Addresses and the domain in the form in which they compare. */
export interface MessageListFilter {
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
  user_id?: string | undefined
  category?: string | undefined
  /** Without those that came in. */
  is_sent?: true | undefined
  after: string | undefined
  before: string | undefined
}

/**
 * The messages, newest first: ids rise with time, so the index is walked backwards. `answer` makes of them what
 * the channel answers.
 */
export async function list<Shown extends object>(
  db: Reader,
  scope: ChannelScope,
  filter: MessageListFilter,
  window: ListWindow,
  answer: (rows: MessageView[]) => Promise<Shown[]>,
) {
  const { project_id } = scope
  const place = placeOf(db, scope, filter)
  const found = boundedList<Message>(db, { owner: project_id, table: messages, ...place })
  const { rows, end } = await found.list(window)
  const total = () => countMessages(db, scope, filter, found.total)
  const shown = await answer(await asTheyStand(db, rows))
  return { rows: shown, end, total } satisfies Page<Shown>
}

/** The index of one filter, the narrowest as a rule, and what it does not know. */
function placeOf(
  db: Reader,
  { project_id, channel }: ChannelScope,
  filter: MessageListFilter,
): MessagePlace {
  const { to, subscriber_ids = [], user_id, template_id, tag, status } = filter
  const of_channel = eq(messages.channel, channel)
  const within = idsBetween(messages.id, filter)
  const along = (...indexed: (SQL | undefined)[]): IdSource => ({
    rows: messages,
    id: messages.id,
    where: and(eq(messages.project_id, project_id), ...indexed, within),
  })
  const rest = (known: Partial<MessageListFilter>) =>
    and(of_channel, conditionsOf(db, project_id, { ...filter, ...known }))
  const by = (name: keyof MessageListFilter, condition: SQL | undefined): MessagePlace => ({
    along: along(condition),
    filter: rest({ [name]: undefined }),
  })
  if (status === "sending") {
    return { along: beingSent(db, project_id), filter: rest({ status: undefined }) }
  }
  if (to !== undefined) return by("to", eq(messages.address, to))
  if (subscriber_ids.length === 1) return by("subscriber_ids", ofSubscribers(subscriber_ids))
  if (user_id !== undefined) return by("user_id", ofUser(user_id))
  if (template_id !== undefined) return by("template_id", ofTemplate(template_id))
  if (tag !== undefined) {
    return { along: taggedWith(project_id, tag, filter), filter: rest({ tag: undefined }) }
  }
  if (status === undefined) {
    return { along: along(of_channel), filter: conditionsOf(db, project_id, filter) }
  }
  const of_status = eq(messages.status, status)
  // A claim is not in the index.
  return status === "queued"
    ? { along: along(of_status), filter: rest({}) }
    : by("status", of_status)
}

type MessagePlace = Pick<BoundedList<Message>, "along" | "filter">

function conditionsOf(db: Reader, project_id: string, filter: MessageListFilter): SQL | undefined {
  const { status, to, from, tag, domain, subject, stream, batch_id } = filter
  return and(
    filter.is_sent && ne(messages.status, "received"),
    status && hasStatus(db, status),
    to === undefined ? undefined : eq(messages.address, to),
    from === undefined ? undefined : eq(messages.sender, from),
    domain === undefined ? undefined : eq(messages.sender_domain, domain),
    subject === undefined ? undefined : contains(subject),
    stream && eq(messages.stream, stream),
    batch_id === undefined ? undefined : isAskedId(messages.batch_id, batch_id),
    filter.user_id === undefined ? undefined : ofUser(filter.user_id),
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

const ofUser = (user_id: string) => and(eq(messages.user_id, user_id), isNotNull(messages.user_id))

const ofSubscribers = (ids: string[]) =>
  and(
    or(...ids.map((id) => isAskedId(messages.subscriber_id, id))),
    isNotNull(messages.subscriber_id),
  )

const contains = (text: string) => sql`${messages.subject_key} LIKE ${partOf(text)} ESCAPE '\\'`

const ofTag = (project_id: string, tag: string) =>
  and(eq(messageTags.project_id, project_id), eq(messageTags.tag, tag))

const taggedWith = (project_id: string, tag: string, times: MessageListFilter): IdSource => ({
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

const MOST_IN_FLIGHT = 10_000

async function countMessages(
  db: Reader,
  { project_id, channel }: ChannelScope,
  filter: MessageListFilter,
  counted: () => Promise<number | null>,
) {
  const names = Object.entries(filter).filter(([, value]) => value !== undefined)
  const only = names.length === 1 ? filter.status : undefined
  if ((names.length > 0 && !only) || only === "sending") return counted()

  const settled_names = settledCounters(channel)
  const sums = await totals(db, project_id, [channel, ...settled_names])
  if (!only) return sums.get(channel) ?? 0
  const settled = sums.get(counterOf(channel, only))
  if (settled !== undefined) return settled
  const sent_now = beingSent(db, project_id)
  const in_flight = await countUpTo(db, sent_now, MOST_IN_FLIGHT)
  const done = settled_names.reduce((sum, name) => sum + (sums.get(name) ?? 0), 0)
  return Math.max(0, (sums.get(channel) ?? 0) - done - in_flight)
}

/** The messages that name a subscriber. As text of its own, the second condition lets both engines take the index. */
export const ofSubscriber = (project_id: string, subscriber_id: string) =>
  and(
    eq(messages.project_id, project_id),
    eq(messages.subscriber_id, subscriber_id),
    isNotNull(messages.subscriber_id),
  )

/** Those of the subscribers, removed ones among them, that messages name. */
export async function havingMessages(
  db: Reader,
  project_id: string,
  subscriber_ids: string[],
): Promise<string[]> {
  const found: string[] = []
  for (const id of subscriber_ids) {
    const rows = db.select({ id: messages.id }).from(messages).where(ofSubscriber(project_id, id))
    if ((await rows.limit(1)).length > 0) found.push(id)
  }
  return found
}

/** When each template's newest stored message was accepted. One without any is not in it. */
export async function lastSent(
  db: Reader,
  project_id: string,
  template_ids: string[],
): Promise<Map<string, string>> {
  if (template_ids.length === 0) return new Map()
  const newest = db
    .select({ created_at: messages.created_at })
    .from(messages)
    .where(and(eq(messages.project_id, project_id), eq(messages.template_id, templates.id)))
    .orderBy(desc(messages.id))
    .limit(1)
  const ours = and(eq(templates.project_id, project_id), inArray(templates.id, template_ids))
  const rows = await db
    .select({ id: templates.id, at: sql<string | null>`(${newest})`.mapWith(messages.created_at) })
    .from(templates)
    .where(ours)
  return new Map(rows.flatMap(({ id, at }) => (at === null ? [] : [[id, at]])))
}

export interface MessageView extends Omit<Message, keyof WorkColumns | "priority"> {
  attempts: number
  next_attempt_at: string | null
}

/**
 * Messages as they stand: one that is claimed is "sending", which its row does not say. One that is
 * held for a provider is tried when the provider is asked again: that is read from the provider, since
 * thousands of rows would have to be written a minute. One that a restored copy holds says so.
 */
export async function asTheyStand(db: Reader, rows: Message[]): Promise<MessageView[]> {
  const waits = new Map<string, Pick<MessageView, "status_reason" | "next_attempt_at">>([
    [RESTORE_HOLD, { status_reason: RESTORE_REASON, next_attempt_at: null }],
  ])
  for (const by of new Set(rows.flatMap(holdOf))) {
    const held = heldFor(by)
    if (!held) continue
    const { project_id, channel, service } = held
    const refusal = await refusalFor(db, kindOf(channel), project_id, service)
    if (!refusal) continue
    waits.set(by, {
      status_reason: waitingReason(refusal),
      next_attempt_at: refusal.next_probe_at,
    })
  }
  return rows.map((row) => ({ ...viewOf(db, row), ...waits.get(holdOf(row)[0] ?? "") }))
}

const holdOf = ({ state, owner }: Message) => (state === HELD && owner !== null ? [owner] : [])

function viewOf(db: Reader, row: Message): MessageView {
  const { state, run_at: _, attempt, owner: __, lease_until: ___, priority: ____, ...view } = row
  const in_memory = inFlightOf(db, "messages")?.isClaimed(row.id) ?? false
  const is_claimed = in_memory || state === LEASED
  return {
    ...view,
    status: is_claimed && isOpen(row.status) ? "sending" : row.status,
    attempts: in_memory ? attempt + 1 : attempt, // the row counts it once it has ended
    next_attempt_at: is_claimed ? null : nextAttemptAt(row),
  }
}

/** Whether a message is claimed, as a condition: at most what the nodes do at once. */
export function isClaimed(db: Reader): SQL {
  const inFlight = inFlightOf(db, "messages")
  return inFlight ? isAmong(db, messages.id, sql`${JSON.stringify(inFlight.ids())}`) : isLeased
}

export function hasStatus(db: Reader, status: Message["status"]): SQL | undefined {
  if (status === "queued") return and(eq(messages.status, "queued"), sql`NOT (${isClaimed(db)})`)
  if (status === "sending") return and(eq(messages.status, "queued"), isClaimed(db))
  return eq(messages.status, status)
}
