import { and, asc, eq, inArray } from "drizzle-orm"
import { millis, now } from "../core/time"
import { comparable } from "../lib/address"
import type { ChosenPreferences } from "../lib/preferences"
import { held } from "../store/dialect"
import type { Reader, Tx } from "../store/store"
import { type DecidedCategory, decide } from "../subscribers/decision"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import { subscribers, unsubscribes } from "../subscribers/tables"
import { addUnsubscribe, removeUnsubscribes } from "./subscriber-choices"
import type { UnsubscribeScope } from "./unsubscribe-links"

/** More subscribers of one address are not changed by one page. */
export const MOST_SHARING = 20

interface LinkedAddress {
  project_id: string
  /** In any spelling. */
  address: string
}

/** A subscriber with the address of a link, and what it ended of email: "" is the whole channel. */
export interface LinkedSubscriber {
  row: SubscriberRow
  ended: Set<string>
}

/** The subscribers of a project with this address, the oldest first. Most addresses have one, or none. */
export const subscribersAt = async (
  db: Reader,
  about: LinkedAddress,
): Promise<LinkedSubscriber[]> => withEnded(db, await sharing(db, about))

/** The same, and until the transaction ends nobody else changes them. */
export const holdSubscribersAt = async (
  tx: Tx,
  about: LinkedAddress,
): Promise<LinkedSubscriber[]> => withEnded(tx, await held(sharing(tx, about)))

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
  const people = new Map(rows.map((row) => [row.id, { row, ended: new Set<string>() }]))
  const { subscriber_id, category, channel } = unsubscribes
  const theirs = and(inArray(subscriber_id, [...people.keys()]), eq(channel, "email"))
  for (const one of await db.select({ subscriber_id, category }).from(unsubscribes).where(theirs)) {
    people.get(one.subscriber_id)?.ended.add(one.category)
  }
  return [...people.values()]
}

/** One kind of email that a person can end alone. */
export interface SubscriptionKind {
  scope: UnsubscribeScope
  /** For people; null where only its key is known. */
  name: string | null
  category: DecidedCategory | null
  topic: { key: string; default: "on" | "off" } | null
}

/**
 * Whether a subscriber wants email of a kind, where the channel as a whole is on. `defaults` are what the
 * project chose for those that did not.
 */
export function wantsKind(
  { row, ended }: LinkedSubscriber,
  { category, topic }: SubscriptionKind,
  defaults: ChosenPreferences | null,
): boolean {
  const { email: { enabled: _, ...email } = {}, ...chosen } = row.preferences ?? {}
  const rows = [...ended].filter((name) => name !== "")
  const { is_allowed } = decide({
    subscriber: {
      status: "active",
      timezone: row.timezone,
      preferences: { ...chosen, email },
      unsubscribes: rows.map((name) => ({ channel: "email", category: name })),
    },
    ...{ is_suppressed: false, category, topic, workflow: null },
    ...{ channel: "email", stream: "broadcast", recent: 0, at: millis() },
    project: { default_preferences: defaults, ...NO_TIMES },
  })
  return is_allowed
}

/** When and how often something is sent is not the question here. */
const NO_TIMES = { quiet_hours: null, timezone: "UTC", frequency_cap: null }

/** Whether a subscriber wants email at all. */
export const wantsEmail = ({ row, ended }: LinkedSubscriber): boolean =>
  !ended.has("") && row.preferences?.email?.enabled !== false

/**
 * Writes that a subscriber wants no email of a kind, so that it holds when the subscriber gets another
 * address: of a category the row, of a topic the preference. Returns whether something changed.
 */
export async function endKind(
  tx: Tx,
  person: LinkedSubscriber,
  { scope }: Pick<SubscriptionKind, "scope">,
  reason: string,
): Promise<boolean> {
  const { type, key } = scope
  if (type === "topic" && key !== null) return setTopic(tx, person, key, false)
  if (type !== "category" || key === null) return false
  return endRow(tx, person, key, reason)
}

/** Writes that a subscriber wants no email at all. Returns whether something changed. */
export const endEmail = (tx: Tx, person: LinkedSubscriber, reason: string): Promise<boolean> =>
  endRow(tx, person, "", reason)

async function endRow(tx: Tx, { row, ended }: LinkedSubscriber, category: string, reason: string) {
  if (ended.has(category)) return false
  ended.add(category)
  await addUnsubscribe(tx, row, { channel: "email", category, reason })
  return true
}

/**
 * Writes that a subscriber wants email of a kind: the row goes, and where something still says no, a
 * preference says yes. Returns whether something changed.
 */
export async function allowKind(
  tx: Tx,
  person: LinkedSubscriber,
  kind: SubscriptionKind,
  defaults: ChosenPreferences | null,
): Promise<boolean> {
  const { type, key } = kind.scope
  if (key === null) return false
  const had_row = type === "category" && (await allowRow(tx, person, key))
  if (wantsKind(person, kind, defaults)) return had_row
  if (type === "topic") return setTopic(tx, person, key, true)
  const { email = {} } = person.row.preferences ?? {}
  const categories = { ...email.categories, [key]: true }
  return setPreferences(tx, person, { email: { ...email, categories } })
}

/** Writes that a subscriber wants email at all. Returns whether something changed. */
export async function allowEmail(tx: Tx, person: LinkedSubscriber): Promise<boolean> {
  const had_row = await allowRow(tx, person, "")
  const { email } = person.row.preferences ?? {}
  if (email?.enabled !== false) return had_row
  return setPreferences(tx, person, { email: { ...email, enabled: true } })
}

async function allowRow(tx: Tx, { row, ended }: LinkedSubscriber, category: string) {
  if (!ended.delete(category)) return false
  await removeUnsubscribes(tx, row.id, { channel: "email", category })
  return true
}

function setTopic(tx: Tx, person: LinkedSubscriber, key: string, value: boolean) {
  const { topics = {} } = person.row.preferences ?? {}
  const own = Object.hasOwn(topics, key) ? topics[key] : undefined
  if (own?.email === value) return false
  return setPreferences(tx, person, { topics: { ...topics, [key]: { ...own, email: value } } })
}

async function setPreferences(tx: Tx, { row }: LinkedSubscriber, changes: ChosenPreferences) {
  row.preferences = { ...row.preferences, ...changes } // for the next choice of the same form
  const changed = { preferences: row.preferences, updated_at: now() }
  await tx.update(subscribers).set(changed).where(eq(subscribers.id, row.id))
  return true
}
