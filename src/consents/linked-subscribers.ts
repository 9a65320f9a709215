import { and, asc, eq, gt, inArray } from "drizzle-orm"
import { millis, now } from "../core/time"
import { comparable } from "../lib/address"
import type { AudienceChannel, ChosenPreferences } from "../lib/preferences"
import { forUpdate } from "../store/columns"
import type { Reader, Tx } from "../store/store"
import { type DecidedCategory, decide } from "../subscribers/decision"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import { subscribers, unsubscribes } from "../subscribers/tables"
import { addUnsubscribe, removeUnsubscribes } from "./subscriber-choices"
import type { UnsubscribeScope } from "./unsubscribe-links"

/** More subscribers of one address are not changed by one page. */
const MOST_SHARING = 20

interface LinkedAddress {
  project_id: string
  /** In any spelling. */
  address: string
}

/** A subscriber with the address of a link, and the categories that it ended of each channel: "" is all of it. */
export interface LinkedSubscriber {
  row: SubscriberRow
  ended: Record<AudienceChannel, Set<string>>
}

/** The subscribers of a project with this address, the oldest first. Most addresses have one, or none. */
export const subscribersAt = async (
  db: Reader,
  about: LinkedAddress,
): Promise<LinkedSubscriber[]> => withEnded(db, await sharing(db, about))

/** The same, and until the transaction ends nobody else changes them. */
export const subscribersAtForUpdate = async (
  tx: Tx,
  about: LinkedAddress,
): Promise<LinkedSubscriber[]> => withEnded(tx, await forUpdate(sharing(tx, about)))

/** A subscriber whose row was read. */
export async function linked(db: Reader, row: SubscriberRow): Promise<LinkedSubscriber> {
  const [person] = await withEnded(db, [row])
  return person ?? { row, ended: nothingEnded() }
}

/** The next subscribers of a project with this phone number, in the order of their ids, for an update. */
export const subscribersWithNumber = async (
  tx: Tx,
  { project_id, number }: { project_id: string; number: string },
  { after, limit }: { after: string | undefined; limit: number },
): Promise<LinkedSubscriber[]> => {
  const { id, phone } = subscribers
  const ours = and(eq(subscribers.project_id, project_id), eq(phone, number))
  const rest = after === undefined ? undefined : gt(id, after)
  const some = tx.select().from(subscribers).where(and(ours, rest)).orderBy(asc(id)).limit(limit)
  return withEnded(tx, await forUpdate(some))
}

const sharing = (db: Reader, { project_id, address }: LinkedAddress) =>
  db
    .select()
    .from(subscribers)
    .where(
      and(eq(subscribers.project_id, project_id), eq(subscribers.email_key, comparable(address))),
    )
    .orderBy(asc(subscribers.id))
    .limit(MOST_SHARING)

async function withEnded(db: Reader, rows: SubscriberRow[]): Promise<LinkedSubscriber[]> {
  if (rows.length === 0) return []
  const people = new Map(rows.map((row) => [row.id, { row, ended: nothingEnded() }]))
  const theirs = inArray(unsubscribes.subscriber_id, [...people.keys()])
  for (const one of await db.select().from(unsubscribes).where(theirs)) {
    people.get(one.subscriber_id)?.ended[one.channel].add(one.category)
  }
  return [...people.values()]
}

const nothingEnded = (): LinkedSubscriber["ended"] => ({
  ...{ email: new Set(), push: new Set(), sms: new Set(), in_app: new Set() },
})

/** One kind of message of a channel that a person can end alone. */
export interface SubscriptionKind {
  channel: AudienceChannel
  scope: UnsubscribeScope
  /** For people; null where only its key is known. */
  name: string | null
  category: DecidedCategory | null
  topic: { key: string; default: "on" | "off" } | null
}

/**
 * Whether a subscriber wants messages of a kind, where the channel as a whole is on. `defaults` are what the
 * project chose for those that did not.
 */
export function wantsKind(
  { row, ended }: LinkedSubscriber,
  { channel, category, topic }: SubscriptionKind,
  defaults: ChosenPreferences | null,
): boolean {
  const { [channel]: { enabled: _, ...own } = {}, ...chosen } = row.preferences ?? {}
  const rows = [...ended[channel]].filter((name) => name !== "")
  const { is_allowed } = decide({
    subscriber: {
      status: "active",
      timezone: row.timezone,
      preferences: { ...chosen, [channel]: own },
      unsubscribes: rows.map((name) => ({ channel, category: name })),
    },
    ...{ is_suppressed: false, category, topic, workflow: null },
    ...{ channel, stream: "broadcast", recent: 0, at: millis() },
    project: { default_preferences: defaults, ...NO_TIMES },
  })
  return is_allowed
}

/** When and how often something is sent is not the question here. */
const NO_TIMES = { quiet_hours: null, timezone: "UTC", frequency_cap: null }

/** Whether a subscriber wants messages of a channel at all. */
export const wantsChannel = ({ row, ended }: LinkedSubscriber, channel: AudienceChannel): boolean =>
  !ended[channel].has("") && row.preferences?.[channel]?.enabled !== false

/**
 * Writes that a subscriber wants no messages of a channel, or of one kind of them, so that it holds when the subscriber
 * gets another address: of a channel or category the row, of a topic the preference. Returns whether something changed.
 */
export async function end(
  tx: Tx,
  person: LinkedSubscriber,
  channel: AudienceChannel,
  scope: UnsubscribeScope | null,
  reason: string,
): Promise<boolean> {
  const { type, key } = scope ?? { type: "category", key: "" }
  if (type === "topic" && key !== null) return setTopic(tx, person, { channel, key }, false)
  if (type !== "category" || key === null) return false
  if (person.ended[channel].has(key)) return false
  person.ended[channel].add(key)
  await addUnsubscribe(tx, person.row, { channel, category: key, reason })
  return true
}

/**
 * Writes that a subscriber wants messages of a channel, or of one kind of them: the row goes, and where something still
 * says no, a preference says yes. Returns whether something changed.
 */
export async function allow(
  tx: Tx,
  person: LinkedSubscriber,
  channel: AudienceChannel,
  kind: SubscriptionKind | null,
  defaults: ChosenPreferences | null,
): Promise<boolean> {
  const { type, key } = kind?.scope ?? { type: "category", key: "" }
  if (key === null) return false
  const had_row = type === "category" && person.ended[channel].delete(key)
  if (had_row) await removeUnsubscribes(tx, person.row.id, { channel, category: key })
  const { [channel]: own = {} } = person.row.preferences ?? {}
  if (kind === null) {
    if (own.enabled !== false) return had_row
    return setPreferences(tx, person, { [channel]: { ...own, enabled: true } })
  }
  if (wantsKind(person, kind, defaults)) return had_row
  if (type === "topic") return setTopic(tx, person, { channel, key }, true)
  const categories = { ...own.categories, [key]: true }
  return setPreferences(tx, person, { [channel]: { ...own, categories } })
}

interface TopicOfChannel {
  channel: AudienceChannel
  key: string
}

function setTopic(
  tx: Tx,
  person: LinkedSubscriber,
  { channel, key }: TopicOfChannel,
  value: boolean,
) {
  const { topics = {} } = person.row.preferences ?? {}
  const own = Object.hasOwn(topics, key) ? topics[key] : undefined
  if (own?.[channel] === value) return false
  return setPreferences(tx, person, { topics: { ...topics, [key]: { ...own, [channel]: value } } })
}

async function setPreferences(tx: Tx, { row }: LinkedSubscriber, changes: ChosenPreferences) {
  row.preferences = { ...row.preferences, ...changes } // for the next choice of the same form
  const changed = { preferences: row.preferences, updated_at: now() }
  await tx.update(subscribers).set(changed).where(eq(subscribers.id, row.id))
  return true
}
