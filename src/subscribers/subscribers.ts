import { isDeepStrictEqual } from "node:util"
import { eq, inArray } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail, Problems } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import { checkMetadata } from "../http/field-schemas"
import type { Caller } from "../identity/caller"
import { comparable } from "../lib/address"
import { fieldsOf } from "../lib/record-fields"
import { type Bump, bumpAll } from "../store/counters"
import { inserter, newRowInserter, remover, updater } from "../store/statements"
import type { Tx } from "../store/store"
import { externalForUpdate, lookupExternal, type SubscriberRow } from "./find-subscriber"
import { type PostedChange, type PostedRow, postChanges } from "./postings"
import { Subscriber } from "./schemas"
import { entriesOf, searchKeyOf } from "./search-words"
import type { ChangesInput, SubscriberInput } from "./subscriber-input"
import {
  mergedSubscribers,
  subscribers,
  subscriberTags,
  subscriberWords,
  unsubscribes,
} from "./tables"

/** Throws 409 `duplicate_subscriber` where the project has the external id already. */
export async function create(
  tx: Tx,
  project_id: string,
  given: SubscriberInput,
): Promise<SubscriberRow> {
  const [row] = await insertAll(tx, [newRow(project_id, given)])
  return row ?? taken(tx, project_id, given.external_id)
}

async function taken(tx: Tx, project_id: string, external_id: string): Promise<never> {
  const known = await lookupExternal(tx, project_id, external_id)
  const message = `This project already has a subscriber with the external id ${external_id}.`
  return fail("duplicate_subscriber", message, { id: known?.id ?? null })
}

/** Creates the subscriber with this external id, or changes it. */
export async function put(
  tx: Tx,
  project_id: string,
  given: SubscriberInput,
): Promise<{ row: SubscriberRow; is_new: boolean }> {
  const known = await externalForUpdate(tx, project_id, given.external_id)
  if (known) return { row: await change(tx, known, given.fields), is_new: false }
  const [row] = await insertAll(tx, [newRow(project_id, given)])
  if (row) return { row, is_new: true }
  const faster = await externalForUpdate(tx, project_id, given.external_id)
  if (!faster) throw new Error("A subscriber was made and removed within one transaction")
  return { row: await change(tx, faster, given.fields), is_new: false }
}

/**
 * Changes a subscriber that the transaction holds; what is equal is not written. Throws 409
 * `duplicate_subscriber` where another one has the new external id.
 */
export async function change(
  tx: Tx,
  before: SubscriberRow,
  fields: Partial<SubscriberRow>,
): Promise<SubscriberRow> {
  const { external_id = before.external_id } = fields
  if (external_id !== before.external_id) await takeName(tx, before.project_id, external_id)
  const after = changed(before, fields)
  await updateAll(tx, [{ before, after }])
  return after
}

/**
 * Keeps a name for this transaction: a row that has it is written and removed. On Postgres that waits for
 * others that are about to take the name, where a look-up would not see them. Throws 409.
 */
async function takeName(tx: Tx, project_id: string, external_id: string): Promise<void> {
  const place = newRow(project_id, { external_id, fields: {} })
  const fresh = await insertRows(tx, [place])
  if (!fresh.has(place.id)) return taken(tx, project_id, external_id)
  await tx.delete(subscribers).where(eq(subscribers.id, place.id))
}

/**
 * As `change`, for what a request says: the keys of its metadata are added to those that are there, and
 * null removes one. Throws 422 where they become too many.
 */
export async function patch(tx: Tx, before: SubscriberRow, { fields }: ChangesInput) {
  const { metadata: given } = fields
  if (!given) return change(tx, before, fields)
  const keys = Object.entries({ ...before.metadata, ...given })
  const metadata = Object.fromEntries(keys.filter(([key]) => given[key] !== null))
  const problems = new Problems()
  checkMetadata(metadata, problems)
  problems.throwIfAny()
  return change(tx, before, { ...fields, metadata })
}

/** A row as it is after a change; the same object where nothing differs. */
export function changed(before: SubscriberRow, fields: Partial<SubscriberRow>): SubscriberRow {
  const after = derived({ ...before, ...fields })
  return isDeepStrictEqual(before, after) ? before : { ...after, updated_at: now() }
}

/** The row of a new subscriber. */
export function newRow(
  project_id: string,
  { external_id, fields }: { external_id: string; fields: Partial<SubscriberRow> },
): SubscriberRow {
  const moment = now()
  return derived({
    ...{ id: newId(), project_id, external_id },
    ...{ email: null, email_key: null, phone: null, name: null, avatar_url: null },
    ...{ locale: null, timezone: null, metadata: {}, tags: [], status: "active" as const },
    ...{ preferences: null, auth_user_id: null, search_key: "", last_seen_at: null },
    ...{ created_at: moment, updated_at: moment },
    ...fields,
  })
}

/** With the columns that follow from the others. */
const derived = (row: SubscriberRow): SubscriberRow => ({
  ...row,
  email_key: row.email === null ? null : comparable(row.email),
  search_key: searchKeyOf(row),
})

/** Writes new rows; those whose external id is taken are left out. Returns the others. */
export async function insertAll(tx: Tx, rows: SubscriberRow[]): Promise<SubscriberRow[]> {
  const fresh = await insertRows(tx, rows)
  const added = rows.filter(({ id }) => fresh.has(id))
  await movePlaces(
    tx,
    added.map((after) => ({ after })),
  )
  const bumps: Bump[] = []
  for (const row of added) count(bumps, row, 1)
  await bumpAll(tx, bumps)
  return added
}

/** A row that the transaction holds, as it is and as it is to be. */
export interface SubscriberChange {
  before: SubscriberRow
  after: SubscriberRow
}

/** Writes changes of rows that the transaction holds. Those without a difference cost nothing. */
export async function updateAll(tx: Tx, list: SubscriberChange[]) {
  const real = list.filter(({ before, after }) => before !== after)
  await updateRows(
    tx,
    real.map(({ after }) => after),
  )
  await movePlaces(tx, real)
  const bumps: Bump[] = []
  for (const { before, after } of real) {
    count(bumps, before, -1)
    count(bumps, after, 1)
  }
  await bumpAll(tx, bumps)
}

/** Removes a subscriber that the transaction holds, and notes it in the audit log without personal data. */
export async function remove(tx: Tx, caller: Caller, row: SubscriberRow): Promise<void> {
  const { id, project_id } = row
  await removeRows(tx, [row])
  const target = { type: "subscriber", id }
  const { account_id } = caller
  await audit.record(tx, caller, { account_id, project_id, action: "subscriber.deleted", target })
}

/**
 * Removes rows that the transaction holds, with what belongs to them here: their places in the search,
 * their tags, unsubscribes and former names. Memberships of topics go first (see topics/memberships.ts).
 */
export async function removeRows(tx: Tx, rows: SubscriberRow[]) {
  if (rows.length === 0) return
  const ids = rows.map(({ id }) => id)
  await movePlaces(
    tx,
    rows.map((before) => ({ before })),
  )
  await tx.delete(unsubscribes).where(inArray(unsubscribes.subscriber_id, ids))
  await tx.delete(mergedSubscribers).where(inArray(mergedSubscribers.subscriber_id, ids))
  await tx.delete(subscribers).where(inArray(subscribers.id, ids))
  const bumps: Bump[] = []
  for (const row of rows) count(bumps, row, -1)
  await bumpAll(tx, bumps)
}

/** Writes by what changed rows are found: words, tags and their numbers in posting lists. */
async function movePlaces(tx: Tx, changes: PostedChange[]): Promise<void> {
  const words = difference(changes, wordRows, ({ word }) => word)
  await removeWords(tx, words.gone)
  await insertWords(tx, words.fresh)
  const tags = difference(changes, tagRows, ({ tag }) => tag)
  await removeTags(tx, tags.gone)
  await insertTags(tx, tags.fresh)
  const isMoved = (one: PostedChange) => words.moved.has(one) || tags.moved.has(one)
  await postChanges(tx, changes.filter(isMoved))
}

/** The rows that changes leave behind and need, and the changes that have any. */
function difference<Row>(
  changes: PostedChange[],
  rowsOf: (row: PostedRow) => Row[],
  nameOf: (row: Row) => string,
) {
  const [gone, fresh, moved] = [[] as Row[], [] as Row[], new Set<PostedChange>()]
  for (const change of changes) {
    const { before, after } = change
    const [old, current] = [before ? rowsOf(before) : [], after ? rowsOf(after) : []]
    const [had, has] = [new Set(old.map(nameOf)), new Set(current.map(nameOf))]
    const [left, needed] = [
      old.filter((row) => !has.has(nameOf(row))),
      current.filter((row) => !had.has(nameOf(row))),
    ]
    gone.push(...left)
    fresh.push(...needed)
    if (left.length + needed.length > 0) moved.add(change)
  }
  return { gone, fresh, moved }
}

const wordRows = ({ id: subscriber_id, project_id, search_key }: PostedRow) =>
  [...entriesOf(search_key)].map((word) => ({ project_id, word, subscriber_id }))

const tagRows = ({ id: subscriber_id, project_id, tags }: PostedRow) =>
  tags.map((tag) => ({ project_id, tag, subscriber_id }))

/** Of every list that is filtered by one of these alone. */
export const counterOf = (filter?: "status" | "tag", value = ""): string =>
  filter === undefined ? "subscribers" : `subscribers.${filter}.${value}`

function count(
  bumps: Bump[],
  { project_id: owner, status, tags }: SubscriberRow,
  by: 1 | -1,
): void {
  const add = (name: string) => bumps.push({ owner, name, by })
  add(counterOf())
  add(counterOf("status", status))
  for (const tag of tags) add(counterOf("tag", tag))
}

const insertRows = newRowInserter(subscribers, "id")
const insertWords = inserter(subscriberWords, { quiet: true })
const insertTags = inserter(subscriberTags, { quiet: true })
const removeWords = remover(subscriberWords, ["word", "project_id", "subscriber_id"], {
  quiet: true,
})
const removeTags = remover(subscriberTags, ["tag", "project_id", "subscriber_id"], { quiet: true })

const updateRows = updater(subscribers, {
  where: ["id"],
  set: [
    ...(["external_id", "email", "email_key", "phone", "name", "avatar_url", "locale"] as const),
    ...(["timezone", "metadata", "tags", "status", "preferences", "auth_user_id"] as const),
    ...(["search_key", "last_seen_at", "updated_at"] as const),
  ],
  clear: [],
})

/** The Subscriber record of the contract (43, section 1). */
export const toResponse = (row: SubscriberRow, counted: { devices: number; unread: number }) =>
  fieldsOf(Subscriber, { ...row, ...counted })
