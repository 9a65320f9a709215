import { and, asc, eq, inArray, type SQL } from "drizzle-orm"
import { withDefaults } from "../identity/caller"
import type { ChosenPreferences } from "../lib/preferences"
import type { Reader } from "../store/store"
import { knownCategories } from "../subscribers/categories"
import { plainCategory } from "../subscribers/decision"
import { standing } from "../suppressions/look-up"
import { scopeOf } from "../suppressions/suppressions"
import { topicMembers, topics } from "../topics/tables"
import {
  type LinkedSubscriber,
  type SubscriptionKind,
  subscribersAt,
  wantsEmail,
  wantsKind,
} from "./linked-subscribers"
import { unsubscribeLinks } from "./tables"
import type { FoundLink, UnsubscribeScope } from "./unsubscribe-links"

/** One kind of email that an address gets or could get, and whether it does. */
export interface Subscription extends SubscriptionKind {
  is_subscribed: boolean
}

/** What the owner of an address may choose. */
export interface Subscriptions {
  kinds: Subscription[]
  /** Whether email is wanted at all; null for an address of no subscriber, which cannot say so. */
  gets_email: boolean | null
}

/** More kinds of mail than this are not shown to one person. */
const MOST_KINDS = 200

/**
 * All kinds of email that the owner of an address may choose among: what the address got, what it
 * unsubscribed from, and of a subscriber the public categories, and the public topics that it follows.
 */
export async function subscriptionsOf(
  db: Reader,
  link: Pick<FoundLink, "project_id" | "address" | "settings">,
): Promise<Subscriptions> {
  const { project_id, address } = link
  const defaults = defaultsIn(link)
  const people = await subscribersAt(db, link)
  const ended = (await standing(db, project_id, "email", [address]))
    .filter(({ reason, scope_type }) => reason === "unsubscribe" && scope_type !== "project")
    .map(({ scope_type, scope_key }) => scopeOf(scope_type, scope_key) as UnsubscribeScope)
  const known = [...(await linkedScopes(db, link)), ...ended]
  const kinds = await kindsOf(db, project_id, known, people)
  const names = new Set(ended.map(nameOf))
  return {
    kinds: kinds.map((kind) => ({
      ...kind,
      is_subscribed:
        !names.has(nameOf(kind.scope)) &&
        (people.length === 0 || people.some((person) => wantsKind(person, kind, defaults))),
    })),
    gets_email: people.length === 0 ? null : people.some(wantsEmail),
  }
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

/** These kinds, and what is offered to subscribers, each once and in the order of their names. */
async function kindsOf(
  db: Reader,
  project_id: string,
  known: UnsubscribeScope[],
  people: LinkedSubscriber[],
): Promise<SubscriptionKind[]> {
  const slugs = known.flatMap(({ type, key }) => (type === "category" && key ? [key] : []))
  const keys = known.flatMap(({ type, key }) => (type === "topic" && key ? [key] : []))
  const all = new Map(known.map((scope) => [nameOf(scope), bare(scope)]))
  for (const kind of await categoryKinds(db, project_id, { slugs, people })) {
    all.set(nameOf(kind.scope), kind)
  }
  for (const kind of await topicKinds(db, project_id, { keys, people })) {
    all.set(nameOf(kind.scope), kind)
  }
  const sorted = [...all].sort(([one], [other]) => (one < other ? -1 : 1))
  return sorted.slice(0, MOST_KINDS).map(([, kind]) => kind)
}

/** A kind of which no row says more. */
const bare = (scope: UnsubscribeScope): SubscriptionKind => ({
  ...{ scope, name: null, topic: null },
  category: scope.type === "category" && scope.key !== null ? plainCategory(scope.key) : null,
})

/** The kind of a scope, as `subscriptionsOf` has it. */
export async function kindOf(
  db: Reader,
  project_id: string,
  scope: UnsubscribeScope,
): Promise<SubscriptionKind> {
  const [kind] = await kindsOf(db, project_id, [scope], [])
  return kind ?? bare(scope)
}

interface WantedCategories {
  slugs: string[]
  people: LinkedSubscriber[]
}

async function categoryKinds(
  db: Reader,
  project_id: string,
  { slugs, people }: WantedCategories,
): Promise<SubscriptionKind[]> {
  const known = await knownCategories(db, project_id)
  const offered = [...known.values()].filter(
    ({ slug, critical, channels, visibility }) =>
      slugs.includes(slug) ||
      (people.length > 0 && visibility === "public" && !critical && channels.includes("email")),
  )
  return offered.map(({ name, ...category }) => ({
    ...{ scope: { type: "category", key: category.slug }, name, topic: null },
    category,
  }))
}

interface WantedTopics {
  keys: string[]
  people: LinkedSubscriber[]
}

async function topicKinds(
  db: Reader,
  project_id: string,
  { keys, people }: WantedTopics,
): Promise<SubscriptionKind[]> {
  const ours = eq(topics.project_id, project_id)
  const read = (among: SQL | undefined) =>
    db.select().from(topics).where(and(ours, among)).orderBy(asc(topics.key)).limit(MOST_KINDS)
  const named = keys.length > 0 ? await read(inArray(topics.key, keys)) : []
  const followed = await followedTopics(db, people)
  const open = and(inArray(topics.id, followed), eq(topics.visibility, "public"))
  const rows = [...named, ...(followed.length > 0 ? await read(open) : [])]
  return rows.map(({ key, name, default: value }) => ({
    ...{ scope: { type: "topic", key }, name, category: null },
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
