import { and, asc, eq, gt, inArray, lt } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millisFrom } from "../core/time"
import { idList, isAmong } from "../store/columns"
import { newRowInserter, prepared, remover } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import { type InboxContent, type InboxEntry, inboxContents, inboxEntries } from "./tables"

/** Contents under ids that are there already stay as they are. */
export const insertContents = newRowInserter(inboxContents, "id")

const removeRows = remover(inboxContents, ["id"])

/** Removes contents of their own. What many messages share stays until it is old. */
export const removeContents = (tx: Tx, entries: Pick<InboxEntry, "id">[]) =>
  removeRows(
    tx,
    entries.map(({ id }) => ({ id })),
  )

/** The id under which all messages of a fan-out that say the same have their content: it is as old as the fan-out. */
export function sharedIdOf(fan_out_id: string, name: string): string {
  const hash = new Bun.CryptoHasher("sha256").update(`${fan_out_id} ${name}`).digest("hex")
  return `${fan_out_id.slice(0, 15)}${hash.slice(0, 3)}-8${hash.slice(3, 6)}-${hash.slice(6, 18)}`
}

/** Gives a message another content, its own or that of many. Returns under which id it is stored. */
export async function giveContent(
  tx: Tx,
  { id, project_id }: Pick<InboxEntry, "id" | "project_id">,
  content: InboxContent,
  shared_id: string | null = null,
): Promise<string> {
  await removeContents(tx, [{ id }])
  await insertContents(tx, [{ id: shared_id ?? id, project_id, content }])
  return shared_id ?? id
}

/** By their ids. */
export async function contentsOf(db: Reader, ids: string[]): Promise<Map<string, InboxContent>> {
  const rows = await findContents(db, { ids: [...new Set(ids)] })
  return new Map(rows.map(({ id, content }) => [id, content]))
}

const findContents = prepared({ ids: idList }, (db: Reader, slot) =>
  db
    .select()
    .from(inboxContents)
    .where(isAmong(db, inboxContents.id, slot.ids)),
)

/** Some messages that show one of the contents. */
export async function messagesWith(db: Reader, content_ids: string[], limit: number) {
  const { id, content_id } = inboxEntries
  const rows = db.select({ id }).from(inboxEntries).where(inArray(content_id, content_ids))
  return (await rows.limit(limit)).map((row) => row.id)
}

/** Contents of one look. */
const AT_ONCE = 200

/**
 * Removes contents behind the id `after` that no message has any more, from before a moment. Newer ones may be about to
 * get messages. Resolves with the last id that it looked at, or undefined at the end.
 */
export async function purgeContents(
  store: Store,
  project_id: string,
  before: string,
  after: string,
): Promise<string | undefined> {
  const { id } = inboxContents
  const old = and(lt(id, firstIdAt(millisFrom(before))), gt(id, after))
  const rows = store.read.select({ id }).from(inboxContents)
  const ours = rows.where(and(eq(inboxContents.project_id, project_id), old))
  const ids = (await ours.orderBy(asc(id)).limit(AT_ONCE)).map((row) => row.id)
  if (ids.length === 0) return undefined
  const used = new Set<string>()
  for (const content_id of ids) {
    const of = store.read.select({ id: inboxEntries.id }).from(inboxEntries)
    if ((await of.where(eq(inboxEntries.content_id, content_id)).limit(1)).length > 0) {
      used.add(content_id)
    }
  }
  const unused = ids.filter((one) => !used.has(one))
  if (unused.length > 0) await store.tx((tx) => tx.delete(inboxContents).where(inArray(id, unused)))
  return ids.at(-1)
}
