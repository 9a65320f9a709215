import { and, gte, type SQL, sql } from "drizzle-orm"
import { millis, secondsFromNow } from "../core/time"
import type { QueueCounts } from "../jobs/counts"
import type { Reader } from "../store/store"
import { deliveries } from "./tables"
import { isHeld, isLeased, isOpen } from "./walk"

/** The name of the deliveries' queue, which an operator may pause. */
export const WEBHOOKS = "webhooks"

const DAY_SECONDS = 86_400

/** Rows that are looked at for the oldest; the others are only counted, by the partial indexes. */
const MOST_ROWS = 2000

/** What waits, runs and failed of all projects' webhooks. */
export async function countDeliveries(db: Reader): Promise<QueueCounts> {
  const since = secondsFromNow(-DAY_SECONDS)
  const failed = and(sql`status = 'exhausted'`, gte(deliveries.completed_at, since))
  const parts = [await look(db, isOpen), await look(db, isHeld), await look(db, isLeased)]
  const [open, held, running] = parts.map(({ count }) => count)
  const oldest = Math.min(...parts.map(({ created_at }) => created_at ?? millis()))
  return {
    depth: (open ?? 0) + (held ?? 0),
    oldest_seconds: Math.max(0, Math.floor((millis() - oldest) / 1000)),
    running: running ?? 0,
    failed_24h: await countOf(db, failed),
  }
}

async function look(db: Reader, which: SQL) {
  const { created_at } = deliveries
  const first = db.select({ created_at }).from(deliveries).where(which).limit(MOST_ROWS).as("first")
  const oldest = sql<number | string | null>`min(${first.created_at})`
  const [row] = await db.select({ oldest }).from(first)
  const found = row?.oldest ?? null
  return { count: await countOf(db, which), created_at: found === null ? null : Number(found) }
}

async function countOf(db: Reader, which: SQL | undefined): Promise<number> {
  const [row] = await db.select({ n: sql<number>`count(*)` }).from(deliveries).where(which)
  return Number(row?.n ?? 0)
}
