import { fail, invalid, type Problems } from "../core/errors"
import { isUuid } from "../core/ids"
import { nearest } from "../lib/text"
import type { Reader } from "../store/store"
import { type AudienceMember, audienceOf as membersOf } from "../subscribers/audience"
import { type CategoryRow, knownCategories } from "../subscribers/categories"
import { lookupAll } from "../subscribers/named-subscribers"

/** What accepting mail asks of the people of a project. */
export interface AudienceRules {
  /** Those of the names that the project has, by the name: each is an id, or an external id. */
  find(project_id: string, names: string[]): Promise<Map<string, AudienceMember>>
  /** Its categories by slug; none for a project that never made one. */
  categories(
    project_id: string,
  ): ReadonlyMap<string, CategoryRow> | Promise<ReadonlyMap<string, CategoryRow>>
}

export const audienceRules = (db: Reader): AudienceRules => ({
  async find(project_id, names) {
    const named = await lookupAll(db, project_id, names)
    const ids = [...named.values()].map(({ id }) => id)
    const members = await membersOf(db, project_id, ids)
    return new Map(
      [...named].flatMap(([name, { id }]) => {
        const member = members.get(id)
        return member ? [[name, member] as const] : []
      }),
    )
  },
  categories: (project_id) => knownCategories(db, project_id, { recent: true }),
})

/** What a send says of its recipient. */
export interface AudienceFields {
  category: string | null
  /** The id or the external id of a subscriber. */
  subscriber_id?: string | null
}

const LONGEST_ID = 255

/** The subscriber of a send; null where it names none. */
export function readSubscriberId(value: unknown, path: string, problems: Problems): string | null {
  if (value == null) return null
  if (typeof value === "string" && value !== "" && value.length <= LONGEST_ID) return value
  const hint = `The value must be the id or the external id of a subscriber, 1 to ${LONGEST_ID} characters.`
  return problems.add(path, "invalid", hint) ?? null
}

/** Subscribers that were looked up for several messages at once. */
export type KnownSubscribers = ReadonlyMap<string, AudienceMember>

/** What was looked up of what a send says of its recipient. */
export interface SendAudience {
  /** Null where it names none. */
  subscriber: AudienceMember | null
  /** Its recipient can end its category; nobody can end a critical one. */
  is_endable: boolean
}

/** Of a plain send. */
export const NO_AUDIENCE: SendAudience = { subscriber: null, is_endable: true }

/**
 * The subscriber and the category that a send names. Throws 404 `subscriber_not_found`, and 422
 * with `unknown_category` where the project has categories and this is none of them.
 */
export async function audienceOf(
  rules: AudienceRules,
  project_id: string,
  { subscriber_id, category }: AudienceFields,
  known?: KnownSubscribers,
): Promise<SendAudience> {
  const categories = category === null ? undefined : await rules.categories(project_id)
  if (categories && category !== null) demandCategory(categories, category)
  const is_endable = categories?.get(category ?? "")?.critical !== true
  if (subscriber_id == null) return { subscriber: null, is_endable }
  const found = known ?? (await rules.find(project_id, [subscriber_id]))
  const subscriber = found.get(subscriber_id)
  if (subscriber) return { subscriber, is_endable }
  return fail("subscriber_not_found", `This project has no subscriber ${subscriber_id}.`)
}

/** Whether a send says anything of its recipient that has to be looked up. */
export const namesAudience = ({ subscriber_id, category }: AudienceFields): boolean =>
  subscriber_id != null || category !== null

function demandCategory(categories: ReadonlyMap<string, CategoryRow>, slug: string) {
  if (categories.size === 0 || categories.has(slug)) return
  const near = nearest(slug, [...categories.keys()])?.text
  const text = `This project has no category ${slug}. The nearest is ${near}.`
  throw invalid("category", "unknown_category", text)
}

/** The subscribers that several sends name, in one look-up. */
export async function subscribersOf(
  rules: AudienceRules,
  project_id: string,
  emails: AudienceFields[],
): Promise<KnownSubscribers | undefined> {
  const names = [...new Set(emails.flatMap(({ subscriber_id }) => subscriber_id ?? []))]
  return names.length === 0 ? undefined : rules.find(project_id, names)
}

/** The id of a filter by subscriber, which may be an external id; "" for one that the project does not have. */
export async function subscriberIdOf(
  db: Reader,
  project_id: string,
  asked: string | undefined,
): Promise<string | undefined> {
  if (asked === undefined || isUuid(asked)) return asked
  return (await lookupAll(db, project_id, [asked])).get(asked)?.id ?? ""
}
