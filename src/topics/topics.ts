import { and, eq, type SQL, sql } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail, tooMany } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import type { Caller } from "../identity/caller"
import { holdProject } from "../identity/hold-project"
import { enqueue, type JobHandler, type JobKind } from "../jobs/jobs"
import { partOf, searchable, TOPIC_KEY } from "../lib/text"
import { bump, total } from "../store/counters"
import { held } from "../store/dialect"
import { type RowList, rowList } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import { removeSome } from "./memberships"
import type { TopicChanges, TopicInput } from "./schemas"
import { type TopicRow, topics } from "./tables"

/** Of each project. */
const COUNTER = "topics"

/** Of one project. */
export const MOST_TOPICS = 100_000

const ours = (project_id: string, key: string): SQL | undefined =>
  and(eq(topics.project_id, project_id), eq(topics.key, key))

/** A path may hold any text; a database does not store each one. */
const isKey = (text: string): boolean => KEY.test(text)

const KEY = new RegExp(TOPIC_KEY)

/** Whether a publish to the topic is not over. */
export type IsPublishing = (db: Reader, topic: TopicRow) => Promise<boolean>

/** Looks within the project only. */
export async function lookup(
  db: Reader,
  project_id: string,
  key: string,
): Promise<TopicRow | undefined> {
  const [row] = isKey(key) ? await db.select().from(topics).where(ours(project_id, key)) : []
  return row
}

/** By its key. Throws 404 `topic_not_found`. */
export const find = async (db: Reader, project_id: string, key: string): Promise<TopicRow> =>
  (await lookup(db, project_id, key)) ?? gone()

/** As `find`, and locks the topic until the transaction ends. */
export async function hold(tx: Tx, project_id: string, key: string): Promise<TopicRow> {
  const rows = () => held(tx.select().from(topics).where(ours(project_id, key)))
  const [row] = isKey(key) ? await rows() : []
  return row ?? gone()
}

const gone = (): never =>
  fail("topic_not_found", "There is no such topic in this project. A topic is named by its key.")

/** Throws 409 `conflict` when another topic of the project has the key, and at `MOST_TOPICS`. */
export async function create(tx: Tx, caller: Caller, given: TopicInput): Promise<TopicRow> {
  const { project_id } = caller
  const moment = now()
  const { key, name, description, default: fallback, visibility } = given
  const row: TopicRow = {
    id: newId(),
    project_id,
    key,
    name,
    description,
    default: fallback,
    visibility,
    subscriber_count: 0,
    last_number: 0,
    search_key: searchKeyOf(given),
    created_at: moment,
    updated_at: moment,
  }
  const added = await tx.insert(topics).values(row).onConflictDoNothing().returning()
  if (added.length === 0) return taken(tx, project_id, key)
  await demandRoom(tx, project_id)
  await bump(tx, project_id, COUNTER, 1)
  await log(tx, caller, row, "topic.created", { after: told(row) })
  return row
}

/** Not counting the one that is being made. */
async function demandRoom(tx: Tx, project_id: string): Promise<void> {
  await holdProject(tx, project_id)
  if ((await total(tx, project_id, COUNTER)) < MOST_TOPICS) return
  tooMany(`A project has at most ${MOST_TOPICS} topics. Delete one first.`, MOST_TOPICS)
}

async function taken(db: Reader, project_id: string, key: string): Promise<never> {
  const row = await lookup(db, project_id, key)
  const message = `This project already has a topic with the key ${key}. Choose another key.`
  return fail("conflict", message, { reason: "key_taken", ...(row && { id: row.id }) })
}

const searchKeyOf = ({ key, name, description }: Pick<TopicRow, "key" | "name" | "description">) =>
  searchable([key, name, description ?? ""].join("\n"))

/** A field that is absent stays as it is. The key never changes. */
export async function change(
  tx: Tx,
  caller: Caller,
  key: string,
  changes: TopicChanges,
): Promise<TopicRow> {
  const before = await hold(tx, caller.project_id, key)
  const {
    name = before.name,
    description = before.description,
    default: fallback = before.default,
    visibility = before.visibility,
  } = changes
  const search_key = searchKeyOf({ key, name, description })
  const fields = { name, description, default: fallback, visibility, search_key }
  const after = { ...before, ...fields, updated_at: now() }
  const { updated_at } = after
  await tx
    .update(topics)
    .set({ ...fields, updated_at })
    .where(eq(topics.id, before.id))
  const entry = { before: told(before), after: told(after) }
  await log(tx, caller, after, "topic.updated", entry)
  return after
}

/** Throws 409 `conflict` while a publish runs. The memberships go soon afterwards. */
export async function remove(
  tx: Tx,
  caller: Caller,
  key: string,
  isPublishing: IsPublishing,
): Promise<TopicRow> {
  const row = await hold(tx, caller.project_id, key)
  if (await isPublishing(tx, row)) {
    const message = `A publish to ${key} is not over. Wait for its end, or cancel it first.`
    fail("conflict", message, { reason: "publish_running" })
  }
  const { id, project_id } = row
  await tx.delete(topics).where(eq(topics.id, id))
  await bump(tx, project_id, COUNTER, -1)
  if (row.subscriber_count > 0) await enqueue(tx, topicRemoved, { payload: { id }, project_id })
  await log(tx, caller, row, "topic.deleted", { before: told(row) })
  return row
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

/** Newest first. `search` finds parts of keys, names and descriptions. */
export function list(db: Reader, project_id: string, search?: string): RowList<TopicRow> {
  const of = eq(topics.project_id, project_id)
  const filter =
    search === undefined ? undefined : sql`${topics.search_key} LIKE ${partOf(search)} ESCAPE '\\'`
  const rows = rowList(db, topics, { owner: project_id, of, filter, missing: gone })
  return filter ? rows : { ...rows, total: () => total(db, project_id, COUNTER) }
}

/** The Topic record of the contract (43, section 3). */
export function shown(row: TopicRow) {
  const { id, key, name, description, default: fallback, visibility, subscriber_count } = row
  const { created_at, updated_at } = row
  const own = { id, key, name, description, default: fallback, visibility }
  return { ...own, subscriber_count, created_at, updated_at }
}

/** The log would leave out a field that is called key. */
const told = ({ key: topic, name, description, default: fallback, visibility }: TopicRow) => ({
  topic,
  name,
  description,
  default: fallback,
  visibility,
})

const log = (
  tx: Tx,
  caller: Caller,
  { id, project_id }: TopicRow,
  action: string,
  entry: audit.AuditChange,
) => {
  const { account_id } = caller
  const target = { type: "topic", id }
  return audit.record(tx, caller, { account_id, project_id, action, target, ...entry })
}
