import { and, eq, gt, inArray, lt, type SQL, sql } from "drizzle-orm"
import type { SQLiteColumn } from "drizzle-orm/sqlite-core"
import { firstIdAt } from "../core/ids"
import { millisFrom, monotonic } from "../core/time"
import { ENDED } from "../jobs/work-item"
import { STORED } from "../plans/stored-bytes"
import { forUpdate } from "../store/columns"
import { type Bump, bumpAll } from "../store/counters"
import { rest } from "../store/in-steps"
import type { Reader, Store, Tx } from "../store/store"
import { counterOf, isOpen } from "./status-changes"
import {
  type ChannelName,
  messageContents,
  messageFiles,
  messageRaws,
  messages,
  messageTags,
} from "./tables"

/** Messages of one transaction. With their contents they hold the writer for a millisecond or two. */
const BATCH = 20

/** Messages of a project in a channel that were wanted before a moment: ISO 8601, UTC. */
interface OldMessages {
  project_id: string
  channel: ChannelName
  before: string
}

/**
 * Messages whose every recipient is settled. An id is made before the message is wanted, so the index is
 * walked by ids, and a scheduled message counts from its time.
 */
function areOver({ project_id, channel, before }: OldMessages): SQL | undefined {
  const wanted_since = sql`coalesce(${messages.scheduled_at}, ${messages.created_at})`
  return and(
    eq(messages.project_id, project_id),
    eq(messages.channel, channel),
    lt(messages.id, firstIdAt(millisFrom(before))),
    inArray(messages.state, ENDED),
    sql`${wanted_since} < ${sql.param(before, messages.created_at)}`,
  )
}

/** Messages of one look: it stays short also where none of them has a content any more. */
const LOOK = 500

/**
 * Removes content, recipes and names of files of the next 500 messages behind the id `after`. The messages
 * themselves stay. Resolves with the last id, or undefined where there is no further message or the signal
 * came: then some of the 500 may be left.
 */
export async function expireContents(
  store: Store,
  old: OldMessages,
  after: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const { id } = messages
  const found = store.read.select({ id }).from(messages)
  const next = found.where(and(areOver(old), gt(id, after))).orderBy(id)
  const ids = (await next.limit(LOOK)).map((row) => row.id)
  const kept = await withContent(store.read, ids)
  for (let at = 0; at < kept.length; at += BATCH) {
    if (signal?.aborted) return undefined
    const some = kept.slice(at, at + BATCH)
    const begun_at = monotonic()
    await store.tx((tx) => removeContents(tx, some))
    await rest(begun_at, signal)
  }
  return ids.at(-1)
}

const PARTS = [messageContents, messageRaws, messageFiles]

async function removeContents(tx: Tx, ids: string[]): Promise<void> {
  const { id, project_id, channel, stored_bytes } = messages
  const storing = and(inArray(id, ids), gt(stored_bytes, 0))
  const found = tx.select({ project_id, channel, stored_bytes }).from(messages)
  const rows = await forUpdate(found.where(storing).orderBy(id))
  for (const { message_id } of PARTS) {
    await tx.delete(message_id.table).where(inArray(message_id, ids))
  }
  await tx.update(messages).set({ stored_bytes: 0 }).where(storing)
  await bumpAll(tx, rows.map(lessStored))
}

const lessStored = ({
  project_id: owner,
  channel,
  stored_bytes,
}: Pick<Removed, "project_id" | "channel" | "stored_bytes">) => ({
  owner,
  name: STORED[channel],
  by: -(stored_bytes ?? 0),
})

async function withContent(db: Reader, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return []
  const kept = new Set<string>()
  for (const { message_id } of PARTS) {
    const rows = db.select({ message_id }).from(message_id.table).where(inArray(message_id, ids))
    for (const row of await rows) kept.add(row.message_id)
  }
  return [...kept].sort()
}

/**
 * Removes up to 20 messages behind the id `after`, with everything that `named_by` names of them, and
 * lowers the totals. Resolves with the last id, or undefined where there is no further message.
 */
export async function removeMessages(
  store: Store,
  old: OldMessages,
  after: string,
  named_by: NamedBy,
): Promise<string | undefined> {
  const { id } = messages
  const found = store.read.select({ id }).from(messages)
  // Behind what was looked at: open messages that are older would be read again by each step.
  const some = found.where(and(areOver(old), gt(id, after))).orderBy(id)
  const ids = (await some.limit(BATCH)).map((row) => row.id)
  if (ids.length > 0) await store.tx((tx) => removeByIds(tx, ids, named_by))
  return ids.at(-1)
}

/** The columns by which rows of other tables name a message. Those rows go with it. */
export type NamedBy = SQLiteColumn[]

/** What a channel does before messages are removed, in the same transaction. It passes over those of other channels. */
type LeavingHook = (tx: Tx, ids: string[]) => Promise<void>

const leaving = new Set<LeavingHook>()

/** Set at the start: channels lie above the code that removes messages. */
export const onRemoval = (hook: LeavingHook) => void leaving.add(hook)

/**
 * With everything that `named_by` names of them. Lowers the totals, but not the counts of their days. Returns what was
 * there. None may be claimed.
 */
export async function removeByIds(tx: Tx, ids: string[], named_by: NamedBy): Promise<Removed[]> {
  const { id, project_id, channel, status, tags, stored_bytes } = messages
  const { created_at, status_reason, provider, sender, units, recipients } = messages
  const of_day = { created_at, status_reason, provider, sender, units, recipients }
  // Before the rows are held: a channel changes what is its own first, and the rows behind it.
  for (const leave of leaving) await leave(tx, ids)
  const known = { id, project_id, channel, status, tags, stored_bytes, ...of_day }
  // In the order in which others lock them. Another node may have been faster.
  const rows = await forUpdate(tx.select(known).from(messages).where(inArray(id, ids)).orderBy(id))
  const there = rows.map((row) => row.id)
  if (there.length === 0) return []
  for (const column of named_by) await tx.delete(column.table).where(inArray(column, there))
  await removeTags(tx, rows)
  await tx.delete(messages).where(inArray(id, there))
  await bumpAll(tx, rows.flatMap(lessOf))
  return rows
}

type Removed = Pick<
  typeof messages.$inferSelect,
  | "id"
  | "project_id"
  | "channel"
  | "status"
  | "tags"
  | "stored_bytes"
  | "created_at"
  | "status_reason"
  | "provider"
  | "sender"
  | "units"
  | "recipients"
>

async function removeTags(tx: Tx, rows: Removed[]) {
  const tags = [...new Set(rows.flatMap((row) => row.tags))]
  const [first] = rows
  if (tags.length === 0 || !first) return
  const ids = rows.map(({ id }) => id)
  const { project_id, tag, message_id } = messageTags
  const ours = and(eq(project_id, first.project_id), inArray(tag, tags), inArray(message_id, ids))
  await tx.delete(messageTags).where(ours)
}

/** Every message counts once in its channel, a settled one in its status, too, and each with its bytes. */
function lessOf(row: Removed): Bump[] {
  const { project_id: owner, channel, status } = row
  const names = isOpen(status) ? [channel] : [channel, counterOf(channel, status)]
  return [...names.map((name) => ({ owner, name, by: -1 })), lessStored(row)]
}

export async function keepsContent(db: Reader, message_id: string): Promise<boolean> {
  const of_message = eq(messageContents.message_id, message_id)
  const rows = await db
    .select({ id: messageContents.message_id })
    .from(messageContents)
    .where(of_message)
  return rows.length > 0
}
