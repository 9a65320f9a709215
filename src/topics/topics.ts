import { and, eq, inArray, sql } from "drizzle-orm"
import { fail } from "../core/errors"
import type { Caller } from "../identity/caller"
import { noun } from "../identity/noun"
import { enqueue, type JobHandler, type JobKind } from "../jobs/jobs"
import { partOf, searchable, TOPIC_KEY } from "../lib/text"
import type { Reader, Store, Tx } from "../store/store"
import { removeSome } from "./memberships"
import type { TopicChanges, TopicInput } from "./schemas"
import { type TopicRow, topics } from "./tables"

/** Of one project. */
export const MOST_TOPICS = 100_000

const KEY = new RegExp(TOPIC_KEY)

/** Topics are named by their keys. */
export const topic = noun({
  name: "topic",
  table: topics,
  missing: () =>
    fail("topic_not_found", "There is no such topic in this project. A topic is named by its key."),
  // A path may hold any text; a database does not store each one.
  named_by: { column: "key", isName: (text) => KEY.test(text) },
  unique: {
    column: "key",
    message: (key) => `This project already has a topic with the key ${key}. Choose another key.`,
  },
  counter: "topics",
  most: MOST_TOPICS,
  /** The fields that people choose; the log would leave out one that is called key. */
  audited: ({ key: topic, name, description, default: fallback, visibility }: TopicRow) => ({
    topic,
    name,
    description,
    default: fallback,
    visibility,
  }),
})

export const { find, forUpdate } = topic

export const create = (tx: Tx, caller: Caller, given: TopicInput): Promise<TopicRow> =>
  topic.insert(tx, caller, {
    ...given,
    subscriber_count: 0,
    last_number: 0,
    search_key: searchKeyOf(given),
  })

const searchKeyOf = ({ key, name, description }: Pick<TopicRow, "key" | "name" | "description">) =>
  searchable([key, name, description ?? ""].join("\n"))

/** A field that is absent stays as it is. The key never changes. */
export function change(tx: Tx, caller: Caller, before: TopicRow, changes: TopicChanges) {
  const { name = before.name, description = before.description } = changes
  const { default: fallback = before.default, visibility = before.visibility } = changes
  const fields = { name, description, default: fallback, visibility }
  const search_key = searchKeyOf({ ...before, ...fields })
  return topic.update(tx, caller, before, { ...fields, search_key })
}

/** Whether a publish to the topic is not over. */
type IsPublishing = (db: Reader, topic: TopicRow) => Promise<boolean>

/** Throws 409 `conflict` while a publish runs. The memberships go soon afterwards. */
export const removeUnless =
  (isPublishing: IsPublishing) => async (tx: Tx, caller: Caller, row: TopicRow) => {
    const { id, project_id, key, subscriber_count } = row
    if (await isPublishing(tx, row)) {
      const message = `A publish to ${key} is not over. Wait for its end, or cancel it first.`
      fail("conflict", message, { reason: "publish_running" })
    }
    await topic.remove(tx, caller, row)
    if (subscriber_count > 0) await enqueue(tx, topicRemoved, { payload: { id }, project_id })
  }

/** The memberships of a topic that was deleted, of which there may be millions. */
export const topicRemoved: JobKind<{ id: string }> = {
  name: "topic.removed",
  schedule: (attempt) => Math.min(attempt * 30, 3600),
}

/** Deletes them, some in each transaction. */
export const removeMembers = (store: Store): JobHandler<{ id: string }> => ({
  run: async ({ id }) => {
    while ((await store.tx((tx) => removeSome(tx, id))) > 0);
    return {}
  },
})

/** Parts of keys, names and descriptions. */
export const searching = (search: string | undefined) =>
  search === undefined ? undefined : sql`${topics.search_key} LIKE ${partOf(search)} ESCAPE '\\'`

/** Which of these keys topics of the project have. */
export async function keysAmong(
  db: Reader,
  project_id: string,
  keys: readonly string[],
): Promise<Set<string>> {
  const possible = keys.filter((key) => KEY.test(key))
  if (possible.length === 0) return new Set()
  const rows = await db
    .select({ key: topics.key })
    .from(topics)
    .where(and(eq(topics.project_id, project_id), inArray(topics.key, possible)))
  return new Set(rows.map(({ key }) => key))
}
