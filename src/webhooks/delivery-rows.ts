import { and, eq, getTableColumns, gte, notInArray, type SQL, sql } from "drizzle-orm"
import { millis, secondsFromNow } from "../core/time"
import { blank, type QueueTotals } from "../jobs/counts"
import { inFlightOf } from "../jobs/in-flight"
import { LEASED, RESTORE_HOLD } from "../jobs/work-item"
import { isDead, isLeased, isReady, WorkRows, wakeUpOf } from "../jobs/work-rows"
import { readOfAll } from "../store/heavy-reads"
import type { Reader } from "../store/store"
import { count } from "./endpoint-counts"
import { deliveries } from "./tables"

const DELIVERIES = "webhook_deliveries"

/** What an attempt and its result need to know: no capture of the last attempt, which may be large. */
const {
  event_type,
  url,
  request_headers,
  response_headers,
  last_response_body,
  last_response_status,
  last_error,
  latency_ms,
  last_attempted_at,
  ...claimed
} = getTableColumns(deliveries)

export type ClaimedDelivery = Pick<typeof deliveries.$inferSelect, keyof typeof claimed>

/** What the engine asks of the table: due deliveries by endpoint, also only those asked for by hand. */
export const deliveryRows = new WorkRows<ClaimedDelivery>(deliveries, deliveries.webhook_id, {
  buried: () => ({ status: "exhausted" }),
  onBury: (tx, row) => count(tx, [row as ClaimedDelivery], { open: -1 }),
  narrows: eq(deliveries.by_hand, true),
  claimed,
  under_hold: {
    takes: {
      status: "held",
      // Until when its endpoint's hold lasted says nothing about when it is due.
      run_at: sql`CASE WHEN state = 3 THEN ${deliveries.created_at} ELSE ${deliveries.run_at} END`,
    },
    frees: {
      status: sql`CASE WHEN ${deliveries.attempts} = 0 OR ${deliveries.by_hand}
        THEN 'pending' ELSE 'failed' END`,
    },
  },
})

/** Held until its endpoint is active again. As literals: see the partial indexes. */
export const isHeldByEndpoint = sql`state = 3 AND owner IS NULL`

const isHeldByName = sql`state = 3 AND owner IS NOT NULL`

/** Wakes the delivery loop of every node, after a commit that made deliveries due. */
export const deliveryWakeUp = (db: Reader) => wakeUpOf(db, DELIVERIES)

export const isInFlight = (db: Reader, delivery: { id: string; state: number }): boolean =>
  delivery.state === LEASED || (inFlightOf(db, DELIVERIES)?.has(delivery.id) ?? false)

/** Excludes deliveries that are attempted now from a query of open ones. */
export function notInFlight(db: Reader): SQL | undefined {
  const ids = inFlightOf(db, DELIVERIES)?.ids() ?? []
  return ids.length === 0 ? undefined : notInArray(deliveries.id, ids)
}

export const WEBHOOKS = "webhooks"

const DAY_SECONDS = 86_400

/** Rows that are looked at for the oldest; the others are only counted, by the partial indexes. */
const MOST_ROWS = 2000

/**
 * How many deliveries of all projects wait, run, and were given up in the last day. Their rows are large, so that
 * `countTable`, which reads each row, would take a hundred times as long.
 */
export async function countDeliveries(db: Reader): Promise<QueueTotals> {
  const recent = and(isDead, gte(deliveries.run_at, secondsFromNow(-DAY_SECONDS)))
  const restored = await look(db, isHeldByName)
  const waiting = [await look(db, isReady), await look(db, isHeldByEndpoint), restored]
  const leased = await look(db, isLeased)
  const in_flight = inFlightOf(db, DELIVERIES)?.ids().length ?? 0
  const all = {
    depth: Math.max(0, sum(waiting) - in_flight),
    oldest_seconds: Math.max(...[...waiting, leased].map(ageOf)),
    running: leased.count + in_flight,
    failed_24h: await countOf(db, recent),
  }
  const lines: QueueTotals = new Map([[WEBHOOKS, all]])
  if (restored.count > 0) {
    const { count: depth } = restored
    lines.set(RESTORE_HOLD, { ...blank(), depth, oldest_seconds: ageOf(restored) })
  }
  return lines
}

type Counted = Awaited<ReturnType<typeof look>>

const sum = (parts: Counted[]) => parts.reduce((all, { count }) => all + count, 0)

const ageOf = ({ created_at }: Counted) =>
  created_at === null ? 0 : Math.max(0, Math.floor((millis() - created_at) / 1000))

async function look(db: Reader, which: SQL) {
  const { created_at } = deliveries
  const [row] = await readOfAll(db, (reader) => {
    const some = reader.select({ created_at }).from(deliveries).where(which).limit(MOST_ROWS)
    const first = some.as("first")
    return reader
      .select({ oldest: sql<number | string | null>`min(${first.created_at})` })
      .from(first)
  })
  const found = row?.oldest ?? null
  return { count: await countOf(db, which), created_at: found === null ? null : Number(found) }
}

async function countOf(db: Reader, which: SQL | undefined): Promise<number> {
  const [row] = await readOfAll(db, (reader) =>
    reader.select({ n: sql<number>`count(*)` }).from(deliveries).where(which),
  )
  return Number(row?.n ?? 0)
}
