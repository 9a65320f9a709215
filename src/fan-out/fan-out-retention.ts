import { and, desc, eq, exists, gt, inArray, isNotNull, lt, sql } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millisFrom, nextTurn } from "../core/time"
import { isForRendering } from "../messages/contents"
import { keepsContent } from "../messages/message-retention"
import { fanOutContents, messageContents } from "../messages/tables"
import { inPages } from "../store/in-steps"
import type { Reader, Store } from "../store/store"
import { counters } from "../store/tables"
import { messagesBelow } from "./stopped"
import { type FanOutRow, fanOutParts, fanOuts } from "./tables"

/** Fan-outs, and messages of one, that are looked at together. */
const AT_ONCE = 100
const LOOK = 500

/** Moments in ISO 8601: what is older is no longer kept. */
interface FanOutAges {
  bodies_before: string
  messages_before: string
}

/**
 * By fan-out: a message whose content is stored. None that is newer has one, because the last messages of an
 * ended fan-out are written.
 */
export type MessagesWithContents = Map<string, string>

/**
 * Removes the texts of old fan-outs once no message needs them any more, and the fan-outs themselves once
 * none of their messages is left. `needing` is what the calls before found, so that no call looks at all
 * messages again.
 */
export async function purgeFanOuts(
  store: Store,
  project_id: string,
  { bodies_before, messages_before }: FanOutAges,
  needing: MessagesWithContents,
): Promise<void> {
  const texts = store.read
    .select({ one: sql`1` })
    .from(fanOutContents)
    .where(and(eq(fanOutContents.fan_out_id, fanOuts.id), isForRendering))
  for await (const row of endedBefore(store.read, project_id, bodies_before, exists(texts))) {
    if (await needsTexts(store.read, row, needing)) continue
    const theirs = and(eq(fanOutContents.fan_out_id, row.id), isForRendering)
    await store.tx((tx) => tx.delete(fanOutContents).where(theirs))
  }
  for await (const row of endedBefore(store.read, project_id, messages_before)) {
    if ((await messagesBelow(store.read, row, undefined, 1)).length > 0) continue
    await store.tx(async (tx) => {
      for (const column of [
        fanOutContents.fan_out_id,
        fanOutParts.fan_out_id,
        counters.project_id,
        fanOuts.id,
      ]) {
        await tx.delete(column.table).where(eq(column, row.id))
      }
    })
  }
}

/** The oldest ones first. An id is made before its fan-out ends. */
async function* endedBefore(
  db: Reader,
  project_id: string,
  before: string,
  among?: ReturnType<typeof exists>,
): AsyncGenerator<FanOutRow> {
  const ended = and(
    eq(fanOuts.project_id, project_id),
    lt(fanOuts.id, firstIdAt(millisFrom(before))),
    isNotNull(fanOuts.completed_at),
    lt(fanOuts.completed_at, before),
    among,
  )
  const next = (after: string) => {
    const rows = db.select().from(fanOuts)
    return rows
      .where(and(ended, gt(fanOuts.id, after)))
      .orderBy(fanOuts.id)
      .limit(AT_ONCE)
  }
  for await (const rows of inPages(AT_ONCE, next)) yield* rows
}

/** The contents of the newest messages go last, so they are looked at first. */
async function needsTexts(
  db: Reader,
  row: FanOutRow,
  needing: MessagesWithContents,
): Promise<boolean> {
  const known = needing.get(row.id)
  if (known !== undefined && (await keepsContent(db, known))) return true
  for (let below = known; ; ) {
    const ids = (await messagesBelow(db, row, below, LOOK)).map(({ id }) => id)
    below = ids.at(-1)
    if (below === undefined) break
    const { message_id } = messageContents
    const kept = db.select({ message_id }).from(messageContents)
    const [newest] = await kept.where(inArray(message_id, ids)).orderBy(desc(message_id)).limit(1)
    if (newest) {
      needing.set(row.id, newest.message_id)
      return true
    }
    await nextTurn()
  }
  needing.delete(row.id)
  return false
}
