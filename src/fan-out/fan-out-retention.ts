import { and, eq, exists, inArray, isNotNull, lt, sql } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millisFrom, nextTurn } from "../core/time"
import { isForRendering } from "../messages/shared-contents"
import { fanOutContents, messageContents } from "../messages/tables"
import type { Reader, Store } from "../store/store"
import { counters } from "../store/tables"
import { messagesBelow } from "./fan-out-messages"
import { type FanOutRow, fanOutParts, fanOuts } from "./tables"

/** Fan-outs, and messages of one, that are looked at together. */
const AT_ONCE = 100
const LOOK = 500

/** Moments in ISO 8601: what is older is no longer kept. */
export interface FanOutAges {
  bodies_before: string
  messages_before: string
}

/**
 * Removes the texts of old fan-outs once no message needs them any more, and the fan-outs themselves once
 * none of their messages is left.
 */
export async function purgeFanOuts(
  store: Store,
  project_id: string,
  { bodies_before, messages_before }: FanOutAges,
): Promise<void> {
  const texts = store.read
    .select({ one: sql`1` })
    .from(fanOutContents)
    .where(and(eq(fanOutContents.fan_out_id, fanOuts.id), isForRendering))
  for (const row of await endedBefore(store.read, project_id, bodies_before, exists(texts))) {
    if (await needsTexts(store.read, row)) continue
    const theirs = and(eq(fanOutContents.fan_out_id, row.id), isForRendering)
    await store.tx((tx) => tx.delete(fanOutContents).where(theirs))
  }
  for (const row of await endedBefore(store.read, project_id, messages_before)) {
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
const endedBefore = (
  db: Reader,
  project_id: string,
  before: string,
  among?: ReturnType<typeof exists>,
): Promise<FanOutRow[]> =>
  db
    .select()
    .from(fanOuts)
    .where(
      and(
        eq(fanOuts.project_id, project_id),
        lt(fanOuts.id, firstIdAt(millisFrom(before))),
        isNotNull(fanOuts.completed_at),
        lt(fanOuts.completed_at, before),
        among,
      ),
    )
    .orderBy(fanOuts.id)
    .limit(AT_ONCE)

/** The contents of the newest messages go last, so they are looked at first. */
async function needsTexts(db: Reader, row: FanOutRow): Promise<boolean> {
  for (let below: string | undefined; ; ) {
    const ids = (await messagesBelow(db, row, below, LOOK)).map(({ id }) => id)
    below = ids.at(-1)
    if (below === undefined) return false
    const { message_id } = messageContents
    const kept = db.select({ message_id }).from(messageContents)
    if ((await kept.where(inArray(message_id, ids)).limit(1)).length > 0) return true
    await nextTurn()
  }
}
