import { and, inArray, lt, sql } from "drizzle-orm"
import { secondsFromNow } from "../core/time"
import type { Store } from "../store/store"
import { jobs } from "./tables"

/** As a literal: a bound value would keep the database from using the partial index. */
const isDead = sql`state = 2`

const DEAD_SECONDS = 30 * 86_400
const AT_ONCE = 500

/** Forgets what was buried long ago, some at a time. Returns how many jobs went. */
export async function purgeDead(store: Store): Promise<number> {
  const old = and(isDead, lt(jobs.dead_at, secondsFromNow(-DEAD_SECONDS)))
  const some = await store.read.select({ id: jobs.id }).from(jobs).where(old).limit(AT_ONCE)
  const ids = some.map(({ id }) => id)
  if (ids.length > 0) await store.tx((tx) => tx.delete(jobs).where(inArray(jobs.id, ids)))
  return ids.length
}
