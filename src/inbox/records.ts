import type { Static } from "@sinclair/typebox"
import { messages } from "../messages/tables"
import { idList, isAmong } from "../store/columns"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { contentsOf } from "./kept-contents"
import type { ShownParts } from "./ledger"
import type { InboxMessage, OwnInboxMessage } from "./schemas"
import type { InboxEntry } from "./tables"

/** What its subscriber sees of a message. */
export type OwnMessage = Static<typeof OwnInboxMessage>

type WholeMessage = Static<typeof InboxMessage>

/** A message as its subscriber sees it. */
export function ownMessage(entry: InboxEntry, { content, tags }: ShownParts): OwnMessage {
  const { actions, ...texts } = content
  const { id, seq, subscriber_id, category, collapse_key, completed } = entry
  const { seen_at, read_at, archived_at, snoozed_until, expires_at, created_at, updated_at } = entry
  return {
    ...{ id, seq, subscriber_id, title: texts.title, body: texts.body },
    ...{ action_url: texts.action_url, action_label: texts.action_label },
    actions: actions.map((one) => ({ ...one, completed_at: completedAt(completed, one.key) })),
    ...{ icon: texts.icon, image_url: texts.image_url, category, priority: texts.priority },
    ...{ data: texts.data, tags, collapse_key, seen_at, read_at, archived_at, snoozed_until },
    ...{ expires_at, created_at, updated_at },
  }
}

/** Keys are free text, such as `constructor`. */
const completedAt = (completed: InboxEntry["completed"], key: string): string | null =>
  completed && Object.hasOwn(completed, key) ? (completed[key] ?? null) : null

/** Messages as their subscribers see them, in the order of the entries. */
export const ownMessages = async (db: Reader, entries: InboxEntry[]): Promise<OwnMessage[]> =>
  (await withParts(db, entries)).map(({ entry, ...parts }) => ownMessage(entry, parts))

/** The same with what the project gave along for itself. */
export const wholeMessages = async (db: Reader, entries: InboxEntry[]): Promise<WholeMessage[]> =>
  (await withParts(db, entries)).map(({ entry, metadata, ...parts }) => ({
    ...ownMessage(entry, parts),
    metadata,
  }))

/** What each shows. An entry that was removed meanwhile is left out. */
export async function withParts(db: Reader, entries: InboxEntry[]) {
  if (entries.length === 0) return []
  const ids = entries.map(({ id }) => id)
  const rows = new Map((await findRows(db, { ids })).map((row) => [row.id, row]))
  const contents = await contentsOf(
    db,
    entries.map(({ content_id }) => content_id),
  )
  return entries.flatMap((entry) => {
    const row = rows.get(entry.id)
    const content = contents.get(entry.content_id)
    return row && content ? [{ entry, content, tags: row.tags, metadata: row.metadata }] : []
  })
}

const { id, tags, metadata } = messages

const findRows = prepared({ ids: idList }, (db: Reader, slot) =>
  db
    .select({ id, tags, metadata })
    .from(messages)
    .where(isAmong(db, id, slot.ids)),
)
