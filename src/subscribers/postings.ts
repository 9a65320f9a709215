import { and, asc, desc, eq, gt, lte, min, type SQL } from "drizzle-orm"
import { cached } from "../store/cached"
import { untilDone } from "../store/in-steps"
import * as instanceValues from "../store/instance-values"
import { inserter, prepared, remover, updater } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import { instanceValues as values } from "../store/tables"
import type { SubscriberRow } from "./find-subscriber"
import { decoded, divided, encoded, extended, numberOf, together, without } from "./posting-block"
import { termsOf } from "./search-words"
import { subscriberPostings, subscribers } from "./tables"

export type PostedRow = Pick<SubscriberRow, "id" | "project_id" | "search_key" | "tags">

/**
 * How far the posting lists are: `COMPLETE`, or the last subscriber of which they know. Without the value there are
 * none, as on Postgres. A database that older versions wrote gets them in the background.
 */
const POSTED = "subscriber_postings"

/** All subscribers are in the lists. The word sorts behind every id. */
export const COMPLETE = "complete"

/** Parts that wait in memory to be written together, 4 KB each at most. */
const MOST_WAITING = 500

/** Whether searches may use the lists: each subscriber stands in them. */
export async function areComplete(db: Reader): Promise<boolean> {
  if (!db.isAlone) return false
  return (await knownState(db, POSTED, () => postedUpTo(db))) === COMPLETE
}

const knownState = cached<string | undefined>({ tables: ["instance_values"] })

/** The id of the last subscriber in the lists, or `COMPLETE`; undefined where they are not kept. */
export async function postedUpTo(db: Reader): Promise<string | undefined> {
  const [state] = await stateOf(db, { name: POSTED })
  return state?.value
}

const stateOf = prepared({ name: values.name }, (db: Reader, slot) =>
  db.select({ value: values.value }).from(values).where(eq(values.name, slot.name)),
)

/** `null`: there are no more subscribers. `undefined`: the lists are not kept. */
export async function notePosted(tx: Tx, id: string | null | undefined): Promise<void> {
  if (id === undefined) await instanceValues.remove(tx, POSTED)
  else await instanceValues.set(tx, POSTED, id ?? COMPLETE)
}

/** A change of one subscriber: what it was, and what it is. */
export interface PostedChange {
  before?: PostedRow
  after?: PostedRow
}

/**
 * Brings the posting lists in line with changed rows, in the transaction that changes them. Of subscribers that the
 * lists do not know yet nothing is written: the background comes to them.
 */
export async function postChanges(tx: Tx, changes: PostedChange[]): Promise<void> {
  if (!tx.isAlone || changes.length === 0) return
  const posted = await postedUpTo(tx)
  if (posted === undefined) return
  const known = changes.filter(({ before, after }) => (after ?? before ?? NOBODY).id <= posted)
  await writeChanges(tx, known)
}

const NOBODY = { id: COMPLETE }

/** The same whatever the lists know. */
async function writeChanges(tx: Tx, changes: PostedChange[]): Promise<void> {
  const lists = new Map<string, ListChange>()
  for (const { before, after } of changes) {
    const [had, has] = [before ? termsOf(before) : NONE, after ? termsOf(after) : NONE]
    for (const term of had) if (!has.has(term) && before) noteOf(lists, before, term, "gone")
    for (const term of has) if (!had.has(term) && after) noteOf(lists, after, term, "fresh")
  }
  const writing: Writing = { changed: [], added: [], removed: [] }
  for (const key of [...lists.keys()].sort()) {
    const list = lists.get(key)
    if (!list) continue
    if (list.gone.length > 0) await changeList(tx, list, list.gone, without, writing)
    const is_much = writing.changed.length + writing.added.length >= MOST_WAITING
    await flush(tx, writing, is_much || (list.gone.length > 0 && list.fresh.length > 0))
    if (list.fresh.length > 0) await changeList(tx, list, list.fresh, together, writing)
  }
  await flush(tx, writing, true)
}

const NONE: ReadonlySet<string> = new Set()

interface PostingList {
  project_id: string
  term: string
}

interface ListChange extends PostingList {
  gone: number[]
  fresh: number[]
}

function noteOf(
  lists: Map<string, ListChange>,
  { id, project_id }: PostedRow,
  term: string,
  which: "gone" | "fresh",
) {
  const key = project_id + term
  const list = lists.get(key) ?? { project_id, term, gone: [], fresh: [] }
  lists.set(key, list)
  list[which].push(numberOf(id))
}

type PostingPart = typeof subscriberPostings.$inferSelect

interface Writing {
  changed: PostingPart[]
  added: PostingPart[]
  removed: PostingPart[]
}

async function flush(tx: Tx, writing: Writing, is_due: boolean): Promise<void> {
  if (!is_due) return
  await updateParts(tx, writing.changed.splice(0))
  await removeParts(tx, writing.removed.splice(0))
  await insertParts(tx, writing.added.splice(0))
}

/** Puts numbers into the parts to which they belong, or takes them out. */
async function changeList(
  tx: Tx,
  { project_id, term }: PostingList,
  numbers: number[],
  change: (held: readonly number[], some: readonly number[]) => number[],
  writing: Writing,
): Promise<void> {
  const list = { project_id, term }
  let left = numbers.sort((one, other) => one - other)
  let [part] = await lastPart(tx, list)
  while (left.length > 0) {
    const [least = 0] = left
    let end: number | null = null
    if (part && part.first > least) {
      ;[part] = await partAt(tx, { ...list, first: least })
      const [next] = await nextPart(tx, { ...list, first: least })
      end = next?.first ?? null
    }
    const until = end ?? Number.POSITIVE_INFINITY
    const mine = left.filter((number) => number < until)
    left = left.slice(mine.length)
    const longer = end === null && change === together && part && extended(part.numbers, mine)
    if (part && longer) {
      writing.changed.push({ ...part, numbers: longer })
      return
    }
    const held = part ? decoded(part.numbers) : []
    const is_appended = end === null && least >= (held.at(-1) ?? 0)
    rewrite(list, part, divided(change(held, mine), is_appended), writing)
    if (left.length > 0) [part] = await lastPart(tx, list)
  }
}

function rewrite(
  list: PostingList,
  part: PostingPart | undefined,
  portions: number[][],
  { changed, added, removed }: Writing,
) {
  if (part && portions.length === 0) removed.push(part)
  for (const [at, numbers] of portions.entries()) {
    const first = at > 0 ? (numbers[0] ?? 0) : (part?.first ?? 0)
    const row = { ...list, first, numbers: encoded(numbers) }
    if (at === 0 && part) changed.push(row)
    else added.push(row)
  }
}

const { project_id, term, first } = subscriberPostings

const isOf = (slot: { project_id: SQL<string>; term: SQL<string> }) =>
  and(eq(project_id, slot.project_id), eq(term, slot.term))

const lastPart = prepared({ project_id, term }, (tx: Tx, slot) =>
  tx.select().from(subscriberPostings).where(isOf(slot)).orderBy(desc(first)).limit(1),
)

/** The part in which a number belongs. */
const partAt = prepared({ project_id, term, first }, (tx: Tx, slot) =>
  tx
    .select()
    .from(subscriberPostings)
    .where(and(isOf(slot), lte(first, slot.first)))
    .orderBy(desc(first))
    .limit(1),
)

const nextPart = prepared({ project_id, term, first }, (tx: Tx, slot) =>
  tx
    .select({ first: min(first) })
    .from(subscriberPostings)
    .where(and(isOf(slot), gt(first, slot.first))),
)

const KEY = ["first", "project_id", "term"] as const

const updateParts = updater(subscriberPostings, {
  where: [...KEY],
  set: ["numbers"],
  clear: [],
  quiet: true,
})
const insertParts = inserter(subscriberPostings, { quiet: true })
const removeParts = remover(subscriberPostings, [...KEY], { quiet: true })

/** Subscribers of one transaction, and rows that one removes. */
const AT_ONCE = 100

/**
 * Writes the posting lists of a database that has none: an older version wrote it, or it comes from a Postgres. It goes
 * on where the last process stopped, and after an error `again_ms` later. On Postgres it removes the lists that came from
 * an SQLite. Searches take another way meanwhile. The returned function ends it after the transaction that runs.
 */
export const keepPosted = (store: Store, again_ms?: number): (() => Promise<void>) =>
  untilDone(() => fillSome(store), {
    failed: "the posting lists of subscribers could not be filled",
    again_ms,
  })

/** One step. Returns whether more is left. */
export const fillSome = async (store: Store): Promise<boolean> => {
  const posted = await postedUpTo(store.read)
  if (store.isAlone && posted === COMPLETE) return false
  return store.tx((tx) => (tx.isAlone ? fill(tx) : clear(tx)))
}

async function fill(tx: Tx): Promise<boolean> {
  const posted = await postedUpTo(tx)
  if (posted === COMPLETE) return false
  if (posted === undefined) {
    if (!(await removeSome(tx))) await notePosted(tx, "")
    return true
  }
  const { id, project_id, search_key, tags } = subscribers
  const rows = await tx
    .select({ id, project_id, search_key, tags })
    .from(subscribers)
    .where(gt(id, posted))
    .orderBy(asc(id))
    .limit(AT_ONCE)
  await writeChanges(
    tx,
    rows.map((after) => ({ after })),
  )
  await notePosted(tx, rows.at(-1)?.id ?? null)
  return rows.length > 0
}

async function clear(tx: Tx): Promise<boolean> {
  if ((await postedUpTo(tx)) !== undefined) await notePosted(tx, undefined)
  return removeSome(tx)
}

async function removeSome(tx: Tx): Promise<boolean> {
  const { project_id, term, first } = subscriberPostings
  const some = await tx.select({ project_id, term, first }).from(subscriberPostings).limit(AT_ONCE)
  await removeParts(tx, some)
  return some.length > 0
}
