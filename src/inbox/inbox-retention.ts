import { lt, type SQL } from "drizzle-orm"
import type { SQLiteColumn } from "drizzle-orm/sqlite-core"
import { secondsFromNow } from "../core/time"
import { dayPurge } from "../store/old-days"
import { remover } from "../store/statements"
import type { Store } from "../store/store"
import { inboxChanges, inboxDays } from "./tables"

const DAY_SECONDS = 86_400

/** So long clients that come back hear what they missed. */
const LOG_SECONDS = 7 * DAY_SECONDS

/** Rows of one transaction. */
const AT_ONCE = 500

/** Removes some changes that are too old for anybody to ask for. Returns how many went. */
export const purgeChanges = (store: Store): Promise<number> => {
  const { created_at } = inboxChanges
  return removeSomeChanges(store, lt(created_at, secondsFromNow(-LOG_SECONDS)), created_at)
}

/** Removes some changes that meet the condition, the first ones in an order that an index has. Returns how many went. */
export async function removeSomeChanges(store: Store, which: SQL, order: SQLiteColumn) {
  const { subscriber_id, seq } = inboxChanges
  const rows = store.read.select({ subscriber_id, seq }).from(inboxChanges).where(which)
  const some = await rows.orderBy(order).limit(AT_ONCE)
  if (some.length > 0) await store.tx((tx) => removeChanges(tx, some))
  return some.length
}

const removeChanges = remover(inboxChanges, ["subscriber_id", "seq"], { quiet: true })

/** Removes up to 200 counts of days long past. Returns how many went. */
export const purgeInboxDays = dayPurge(inboxDays, ["project_id", "day", "fact", "shard"])
