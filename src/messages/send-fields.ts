import type { UnsubscribeLinks } from "../consents/unsubscribe-links"
import type { Problems } from "../core/errors"
import { isUuid } from "../core/ids"
import { isPast, secondsFromNow } from "../core/time"
import { readTime } from "../http/page"
import { CATEGORY_SLUG, isLonger } from "../lib/text"
import type { Reader } from "../store/store"
import { knownCategories, requireAmong } from "../subscribers/categories"
import {
  byIds,
  find,
  lookup,
  lookupAll,
  noSubscriber,
  type SubscriberRow,
} from "../subscribers/find-subscriber"
import { takenInBy } from "../subscribers/merged-subscribers"
import { havingMessages } from "./message-list"
import type { Envelope, NewMessage } from "./tables"

export interface AudienceFields {
  category: string | null
  subscriber_id?: string | null
}

const LONGEST_ID = 255

export function readSubscriberId(value: unknown, path: string, problems: Problems): string | null {
  if (value == null) return null
  if (typeof value === "string" && value !== "" && !isLonger(value, LONGEST_ID)) return value
  const hint = `The value must be the id or the external id of a subscriber, 1 to ${LONGEST_ID} characters.`
  return problems.add(path, "invalid", hint) ?? null
}

export type KnownSubscribers = ReadonlyMap<string, SubscriberRow>

export interface SendAudience {
  subscriber: SubscriberRow | null
  /** Its recipient can end its category; nobody can end a critical one. */
  is_endable: boolean
}

/**
 * The subscriber and the category that a send names. Throws 404 `subscriber_not_found`, and 422
 * with `unknown_category` where the project has categories and this is none of them.
 */
export function findAudience(
  db: Reader,
  project_id: string,
  fields: AudienceFields,
  known?: KnownSubscribers,
): SendAudience | Promise<SendAudience> {
  const is_nobody = fields.category === null && fields.subscriber_id == null
  return is_nobody ? NO_AUDIENCE : findNamed(db, project_id, fields, known)
}

const NO_AUDIENCE: SendAudience = { subscriber: null, is_endable: true }

async function findNamed(
  db: Reader,
  project_id: string,
  { subscriber_id, category }: AudienceFields,
  known?: KnownSubscribers,
): Promise<SendAudience> {
  let is_endable = true
  if (category !== null) {
    const categories = await knownCategories(db, project_id, { recent: true })
    requireAmong(categories, category)
    is_endable = categories.get(category)?.critical !== true
  }
  if (subscriber_id == null) return { subscriber: null, is_endable }
  const subscriber = known
    ? (known.get(subscriber_id) ?? noSubscriber())
    : await find(db, project_id, subscriber_id)
  return { subscriber, is_endable }
}

/** It comes before suppressions: the mail of a blocked subscriber is accepted and fails. */
export const isBlocked = ({ subscriber }: Pick<SendAudience, "subscriber">): boolean =>
  subscriber?.status === "blocked"

/** Whether anything is asked of the recipient: a plain message names neither subscriber nor category. */
export const asksAudience = ({
  subscriber_id,
  category,
  envelope,
}: Pick<NewMessage, "subscriber_id" | "category" | "envelope">): boolean =>
  subscriber_id != null || category != null || envelope?.category !== undefined

export async function subscribersOf(
  db: Reader,
  project_id: string,
  sends: Pick<AudienceFields, "subscriber_id">[],
): Promise<KnownSubscribers | undefined> {
  const names = [...new Set(sends.flatMap(({ subscriber_id }) => subscriber_id ?? []))]
  if (names.length === 0) return undefined
  const named = await lookupAll(db, project_id, names)
  const ids = [...named.values()].map(({ id }) => id)
  const rows = new Map((await byIds(db, { project_id, ids })).map((row) => [row.id, row]))
  const found = new Map<string, SubscriberRow>()
  for (const [name, { id }] of named) {
    const row = rows.get(id)
    if (row) found.set(name, row)
  }
  return found
}

/** The subscriber that a message is for. Null where it names none, or one that was deleted. */
export async function subscriberOf(
  db: Reader,
  message: Pick<NewMessage, "project_id" | "subscriber_id">,
): Promise<SubscriberRow | null> {
  const known = await subscribersOf(db, message.project_id, [message])
  return known?.get(message.subscriber_id ?? "") ?? null
}

/**
 * The ids of a filter by subscriber, which may be an external id; "" for one that the project does not have.
 * They are several while a job moves the messages of a merged subscriber.
 */
export async function subscriberIdsOf(
  db: Reader,
  project_id: string,
  asked: string | undefined,
): Promise<string[] | undefined> {
  if (asked === undefined) return undefined
  const id = isUuid(asked) ? asked : (await lookup(db, project_id, asked))?.id
  if (id === undefined) return [""]
  const former = (await takenInBy(db, { project_id, ids: [id] })).map((one) => one.id)
  return [id, ...(await havingMessages(db, project_id, former))]
}

const FORM = new RegExp(CATEGORY_SLUG)

export function readCategory(value: unknown, path: string, problems: Problems): string | null {
  if (value == null) return null
  if (typeof value === "string" && FORM.test(value)) return value
  const hint =
    "The value must be 1 to 64 lower-case letters, digits, hyphens and underscores. It must begin with a letter or digit."
  return problems.add(path, "invalid", hint) ?? null
}

export type CategoryFields = Pick<Envelope, "category" | "unsubscribe">

/**
 * What the envelope keeps of the category: its name, and the token by which its recipient ends it. A mail
 * with copies carries the token of `to`. Nothing for mail without a category, and no token where nobody can
 * end it.
 */
export function categoryFields(
  category: string | null | undefined,
  { project_id, address }: { project_id: string; address: string },
  links: Pick<UnsubscribeLinks, "tokenFor">,
  is_endable = true,
): CategoryFields {
  if (category == null) return {}
  if (!is_endable) return { category }
  const scope = { type: "category" as const, key: category }
  return { category, unsubscribe: links.tokenFor({ project_id, address, scope }) }
}

/** Of a published mail. Its recipient ends the topic, even where the mail has a category. */
export const topicFields = (
  topic: string,
  category: string | null,
  { project_id, address }: { project_id: string; address: string },
  links: Pick<UnsubscribeLinks, "tokenFor">,
): CategoryFields & Pick<Envelope, "topic"> => ({
  ...(category !== null && { category }),
  topic,
  unsubscribe: links.tokenFor({ project_id, address, scope: { type: "topic", key: topic } }),
})

/** How far ahead a message may be scheduled, on every channel (contract 20, 1.1). */
const MAX_DAYS_AHEAD = 90

const DAY_SECONDS = 86_400

/**
 * When a message is to be sent: ISO 8601 with an offset, at most 90 days ahead. Null, an absent value and
 * a time that has passed mean now: they give null. Anything else is a problem.
 */
export function readScheduledAt(value: unknown, path: string, problems: Problems): string | null {
  if (value == null) return null
  const at = readTime(path, typeof value === "string" ? value : "", problems)
  if (at === undefined || isPast(at)) return null
  const latest = secondsFromNow(MAX_DAYS_AHEAD * DAY_SECONDS)
  if (at <= latest) return at
  const hint = `A message can be scheduled at most ${MAX_DAYS_AHEAD} days ahead, until ${latest}. You gave ${at}.`
  return problems.add(path, "too_late", hint) ?? null
}
