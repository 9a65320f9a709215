import { and, gte, type SQL, sql } from "drizzle-orm"
import { millis, secondsFromNow } from "../core/time"
import type { QueueCounts } from "../jobs/counts"
import { isDead, isHeld, isLeased, isReady } from "../jobs/work-rows"
import { inFlightOf } from "../store/in-flight"
import type { Reader } from "../store/store"
import { DELIVERIES } from "./held"
import { deliveries } from "./tables"

/** The name of the queue of deliveries, which an operator may pause. */
export const WEBHOOKS = "webhooks"

const DAY_SECONDS = 86_400

/** Rows that are looked at for the oldest; the others are only counted, by the partial indexes. */
const MOST_ROWS = 2000

/** How many deliveries of all projects wait, run, and were given up in the last day. */
export async function countDeliveries(db: Reader): Promise<QueueCounts> {
  const recent = and(isDead, gte(deliveries.run_at, secondsFromNow(-DAY_SECONDS)))
  const parts = [await look(db, isReady), await look(db, isHeld), await look(db, isLeased)]
  const [ready = 0, held = 0, leased = 0] = parts.map(({ count }) => count)
  const in_flight = inFlightOf(db, DELIVERIES)?.ids().length ?? 0
  const oldest = Math.min(...parts.map(({ created_at }) => created_at ?? millis()))
  return {
    depth: Math.max(0, ready - in_flight) + held,
    oldest_seconds: Math.max(0, Math.floor((millis() - oldest) / 1000)),
    running: leased + in_flight,
    failed_24h: await countOf(db, recent),
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
