import { sql } from "drizzle-orm"
import type { AudienceChannel, ChosenPreferences } from "../lib/preferences"
import {
  bool,
  bytes,
  bytewiseText,
  id,
  index,
  int,
  json,
  primaryKey,
  ref,
  table,
  text,
  time,
  uniqueIndex,
} from "../store/columns"
import { life } from "../store/life"

export const SUBSCRIBER_STATUSES = ["active", "unsubscribed", "blocked"] as const

export type SubscriberStatus = (typeof SUBSCRIBER_STATUSES)[number]

export const subscribers = table(
  "subscribers",
  {
    id: id(),
    project_id: ref().notNull(),
    /** The name that the project's own system has for the person. */
    external_id: text().notNull(),
    email: text(),
    /** The email in the form in which addresses compare. */
    email_key: text(),
    /** In E.164. */
    phone: text(),
    name: text(),
    avatar_url: text(),
    locale: text(),
    timezone: text(),
    metadata: json<Record<string, unknown>>().notNull(),
    tags: json<string[]>().notNull(),
    status: text<SubscriberStatus>().notNull(),
    /** Null: nothing was chosen. */
    preferences: json<ChosenPreferences | null>(),
    auth_user_id: ref(),
    /** Its words (see search-words.ts), each between two spaces. */
    search_key: text().notNull(),
    last_seen_at: time(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (subscriber) => [
    uniqueIndex("subscribers_by_external_id").on(subscriber.project_id, subscriber.external_id),
    index("subscribers_by_project").on(subscriber.project_id, subscriber.id),
    index("subscribers_by_status").on(subscriber.project_id, subscriber.status, subscriber.id),
    index("subscribers_by_email")
      .on(subscriber.project_id, subscriber.email_key, subscriber.id)
      .where(sql`email_key IS NOT NULL`),
    index("subscribers_by_phone")
      .on(subscriber.project_id, subscriber.phone, subscriber.id)
      .where(sql`phone IS NOT NULL`),
  ],
)
life(subscribers, {
  owner: "project",
  ends: "never",
  counts: { name: "subscribers", by: ["status"] },
})

/**
 * By what a subscriber is found: the words of its external id, email and name, and the first letters
 * of each. The subscriber's row says which they are, so nothing looks for them by its id.
 */
export const subscriberWords = table(
  "subscriber_words",
  {
    project_id: ref().notNull(),
    word: bytewiseText().notNull(),
    subscriber_id: ref().notNull(),
  },
  (row) => [primaryKey({ columns: [row.project_id, row.word, row.subscriber_id] })],
)
life(subscriberWords, {
  owner: "project",
  ends: "with row",
  names: { subscriber_id: "subscribers" },
})

/**
 * Posting lists on SQLite: for each term the numbers of the subscribers that have it (see posting-block.ts),
 * in parts. The rows of `subscriber_words` and `subscriber_tags` say the same, and a list
 * takes a tenth of the space. Postgres has no rows here.
 */
export const subscriberPostings = table(
  "subscriber_postings",
  {
    project_id: ref().notNull(),
    /** The beginning of a word, or a tag (see `termsOf`). */
    term: bytewiseText().notNull(),
    /** No number of this part is smaller, and none of the part before is larger. 0 in the first one. */
    first: int().notNull(),
    numbers: bytes().notNull(),
  },
  (row) => [primaryKey({ columns: [row.project_id, row.term, row.first] })],
)
life(subscriberPostings, { owner: "project", ends: "never" })

/** For the filter by tag, which must not search inside JSON. */
export const subscriberTags = table(
  "subscriber_tags",
  {
    project_id: ref().notNull(),
    tag: text().notNull(),
    subscriber_id: ref().notNull(),
  },
  (row) => [primaryKey({ columns: [row.project_id, row.tag, row.subscriber_id] })],
)
life(subscriberTags, {
  owner: "project",
  ends: "with row",
  names: { subscriber_id: "subscribers" },
  counts: { name: "subscribers", by: ["tag"], of_another: true },
})

/**
 * The names that subscribers had before a merge. They lead to what still names the old subscriber, for an
 * export and an erasure. A row goes with the subscriber that was kept.
 */
export const mergedSubscribers = table(
  "merged_subscribers",
  {
    /** The id that the removed subscriber had. */
    id: id(),
    project_id: ref().notNull(),
    /** The subscriber that was kept. */
    subscriber_id: ref().notNull(),
    external_id: text().notNull(),
    /** As in `subscribers`. */
    email_key: text(),
    phone: text(),
    created_at: time().notNull(),
  },
  (row) => [
    index("merged_subscribers_by_subscriber").on(row.subscriber_id, row.id),
    index("merged_subscribers_by_external_id").on(row.project_id, row.external_id),
    index("merged_subscribers_by_email")
      .on(row.project_id, row.email_key)
      .where(sql`email_key IS NOT NULL`),
    index("merged_subscribers_by_phone")
      .on(row.project_id, row.phone)
      .where(sql`phone IS NOT NULL`),
  ],
)
life(mergedSubscribers, {
  owner: "project",
  ends: "with row",
  names: { subscriber_id: "subscribers" },
  personal: { found_by: { subscriber_id: "subscriber_id" } },
})

/** The kinds of messages that a project has, which people can choose among. */
export const categories = table(
  "categories",
  {
    id: id(),
    project_id: ref().notNull(),
    slug: text().notNull(),
    name: text().notNull(),
    description: text(),
    critical: bool().notNull(),
    /** What holds for a person without a choice. */
    default: text<"on" | "off">().notNull(),
    visibility: text<"public" | "private">().notNull(),
    channels: json<AudienceChannel[]>().notNull(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (category) => [uniqueIndex("categories_by_slug").on(category.project_id, category.slug)],
)
life(categories, { owner: "project", ends: "never" })

/** What a subscriber ended: a whole channel, or one category of it. */
export const unsubscribes = table(
  "unsubscribes",
  {
    id: id(),
    project_id: ref().notNull(),
    subscriber_id: ref().notNull(),
    channel: text<AudienceChannel>().notNull(),
    /** "" for the whole channel, because NULLs are never equal. */
    category: text().notNull(),
    reason: text(),
    created_at: time().notNull(),
  },
  (row) => [
    uniqueIndex("unsubscribes_by_subscriber").on(row.subscriber_id, row.channel, row.category),
    index("unsubscribes_by_project").on(row.project_id, row.id),
  ],
)
life(unsubscribes, {
  owner: "project",
  ends: "with row",
  names: { subscriber_id: "subscribers" },
  personal: { found_by: { subscriber_id: "subscriber_id" } },
})
