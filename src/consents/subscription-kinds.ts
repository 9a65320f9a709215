import { and, asc, eq, inArray, type SQL } from "drizzle-orm"
import { withDefaults } from "../identity/caller"
import { AUDIENCE_CHANNELS, type AudienceChannel, type ChosenPreferences } from "../lib/preferences"
import { totals } from "../store/counters"
import type { Reader } from "../store/store"
import { knownCategories } from "../subscribers/categories"
import { plainCategory } from "../subscribers/decision"
import { unexpired } from "../suppressions/look-up"
import { scopeOf } from "../suppressions/suppressions"
import { topicMembers, topics } from "../topics/tables"
import {
  type LinkedSubscriber,
  type SubscriptionKind,
  subscribersAt,
  wantsChannel,
  wantsKind,
} from "./linked-subscribers"
import { unsubscribeLinks } from "./tables"
import type { FoundLink, UnsubscribeScope } from "./unsubscribe-links"

/** One kind of message that a person gets or could get, and whether it does. */
export interface Subscription extends SubscriptionKind {
  is_subscribed: boolean
}

/** What the owner of an address may choose of one channel. */
export interface Subscriptions {
  channel: AudienceChannel
  kinds: Subscription[]
  /** Whether it is wanted at all; null for an address of no subscriber, which cannot say so. */
  is_wanted: boolean | null
}

/** More kinds of mail than this are not shown to one person. */
const MOST_KINDS = 200

/**
 * All that the owner of an address may choose, email first. Of email it is what the address got, and what it
 * unsubscribed from. Of a subscriber it is also the public categories, and the public topics that it follows, in
 * each channel that the project uses.
 */
export async function subscriptionsOf(
  db: Reader,
  link: Pick<FoundLink, "project_id" | "address" | "settings">,
): Promise<[Subscriptions, ...Subscriptions[]]> {
  const people = await subscribersAt(db, link)
  const email = await emailOf(db, link, people)
  const others: Subscriptions[] = []
  for (const channel of people.length > 0 ? await otherChannels(db, link.project_id) : []) {
    const kinds = await kindsOf(db, link.project_id, { channel, known: [], people })
    others.push(subscriptions(channel, kinds, link, people))
  }
  return [email, ...others]
}

async function emailOf(
  db: Reader,
  link: Pick<FoundLink, "project_id" | "address" | "settings">,
  people: LinkedSubscriber[],
): Promise<Subscriptions> {
  const { project_id } = link
  const ended = await endedScopes(db, link)
  const known = [...(await linkedScopes(db, link)), ...ended]
  const kinds = await kindsOf(db, project_id, { channel: "email", known, people })
  const names = new Set(ended.map(nameOf))
  const all = subscriptions("email", kinds, link, people)
  const isEnded = ({ scope }: SubscriptionKind) => names.has(nameOf(scope))
  return {
    ...all,
    kinds: all.kinds.map((kind) => (isEnded(kind) ? { ...kind, is_subscribed: false } : kind)),
  }
}

/** The kinds of email that an address unsubscribed from. */
export const endedScopes = async (
  db: Reader,
  { project_id, address }: Pick<FoundLink, "project_id" | "address">,
): Promise<UnsubscribeScope[]> =>
  (await unexpired(db, project_id, "email", [address]))
    .filter(({ reason, scope_type }) => reason === "unsubscribe" && scope_type !== "project")
    .map(({ scope_type, scope_key }) => scopeOf(scope_type, scope_key) as UnsubscribeScope)

function subscriptions(
  channel: AudienceChannel,
  kinds: SubscriptionKind[],
  link: Pick<FoundLink, "settings">,
  people: LinkedSubscriber[],
): Subscriptions {
  const defaults = defaultsIn(link)
  const isSubscribed = (kind: SubscriptionKind) =>
    people.length === 0 || people.some((person) => wantsKind(person, kind, defaults))
  return {
    channel,
    kinds: kinds.map((kind) => ({ ...kind, is_subscribed: isSubscribed(kind) })),
    is_wanted: people.length === 0 ? null : people.some((person) => wantsChannel(person, channel)),
  }
}

/** The channels beside email in which the project has messages: their counter is of each channel's name. */
async function otherChannels(db: Reader, project_id: string): Promise<AudienceChannel[]> {
  const names = AUDIENCE_CHANNELS.filter((channel) => channel !== "email")
  const sent = await totals(db, project_id, names)
  return names.filter((channel) => (sent.get(channel) ?? 0) > 0)
}

/** What the project chose for subscribers that did not. */
export const defaultsIn = ({ settings }: Pick<FoundLink, "settings">): ChosenPreferences | null =>
  withDefaults(settings).default_preferences

async function linkedScopes(
  db: Reader,
  { project_id, address }: Pick<FoundLink, "project_id" | "address">,
): Promise<UnsubscribeScope[]> {
  const ours = and(
    eq(unsubscribeLinks.project_id, project_id),
    eq(unsubscribeLinks.address, address),
  )
  const { scope_type: type, scope_key: key } = unsubscribeLinks
  const rows = db.selectDistinct({ type, key }).from(unsubscribeLinks).where(ours)
  return await rows.orderBy(asc(type), asc(key)).limit(MOST_KINDS)
}

interface WantedKinds {
  channel: AudienceChannel
  /** Those that the address knows. */
  known: UnsubscribeScope[]
  people: LinkedSubscriber[]
}

/** The known kinds, and what is offered to subscribers, each once and in the order of their names. */
async function kindsOf(
  db: Reader,
  project_id: string,
  wanted: WantedKinds,
): Promise<SubscriptionKind[]> {
  const all = new Map(wanted.known.map((scope) => [nameOf(scope), bareKind(wanted.channel, scope)]))
  for (const kind of await categoryKinds(db, project_id, wanted)) all.set(nameOf(kind.scope), kind)
  for (const kind of await topicKinds(db, project_id, wanted)) all.set(nameOf(kind.scope), kind)
  const sorted = [...all].sort(([one], [other]) => (one < other ? -1 : 1))
  return sorted.slice(0, MOST_KINDS).map(([, kind]) => kind)
}

/** What a subscriber is offered in a channel, whatever its addresses know. */
export const offeredKinds = (
  db: Reader,
  project_id: string,
  channel: AudienceChannel,
  person: LinkedSubscriber,
): Promise<SubscriptionKind[]> => kindsOf(db, project_id, { channel, known: [], people: [person] })

/** A kind of which no row says more. */
export const bareKind = (channel: AudienceChannel, scope: UnsubscribeScope): SubscriptionKind => ({
  ...{ channel, scope, name: null, topic: null },
  category: scope.type === "category" && scope.key !== null ? plainCategory(scope.key) : null,
})

const keysOf = (known: UnsubscribeScope[], type: UnsubscribeScope["type"]): string[] =>
  known.flatMap((scope) => (scope.type === type && scope.key !== null ? [scope.key] : []))

async function categoryKinds(
  db: Reader,
  project_id: string,
  { channel, known, people }: WantedKinds,
): Promise<SubscriptionKind[]> {
  const slugs = keysOf(known, "category")
  const offered = [...(await knownCategories(db, project_id)).values()].filter(
    ({ slug, critical, channels, visibility }) =>
      slugs.includes(slug) ||
      (people.length > 0 && visibility === "public" && !critical && channels.includes(channel)),
  )
  return offered.map(({ name, ...category }) => ({
    ...{ channel, scope: { type: "category", key: category.slug }, name, topic: null },
    category,
  }))
}

async function topicKinds(
  db: Reader,
  project_id: string,
  { channel, known, people }: WantedKinds,
): Promise<SubscriptionKind[]> {
  const keys = keysOf(known, "topic")
  const ours = eq(topics.project_id, project_id)
  const read = (among: SQL | undefined) =>
    db.select().from(topics).where(and(ours, among)).orderBy(asc(topics.key)).limit(MOST_KINDS)
  const named = keys.length > 0 ? await read(inArray(topics.key, keys)) : []
  const followed = await followedTopics(db, people)
  const open = and(inArray(topics.id, followed), eq(topics.visibility, "public"))
  const rows = [...named, ...(followed.length > 0 ? await read(open) : [])]
  return rows.map(({ key, name, default: value }) => ({
    ...{ channel, scope: { type: "topic", key }, name, category: null },
    topic: { key, default: value },
  }))
}

async function followedTopics(db: Reader, people: LinkedSubscriber[]): Promise<string[]> {
  const ids = people.map(({ row }) => row.id)
  if (ids.length === 0) return []
  const { topic_id, subscriber_id } = topicMembers
  const rows = db.selectDistinct({ topic_id }).from(topicMembers)
  const theirs = rows.where(inArray(subscriber_id, ids)).orderBy(asc(topic_id)).limit(MOST_KINDS)
  return (await theirs).map((row) => row.topic_id)
}

/** A scope as one text: `category:news`. */
export const nameOf = ({ type, key }: UnsubscribeScope): string => `${type}:${key ?? ""}`
