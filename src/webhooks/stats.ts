import { and, eq, isNotNull, sql } from "drizzle-orm"
import { secondsFromNow } from "../core/time"
import type { Reader } from "../store/store"
import { createdSince } from "./deliveries"
import { deliveries } from "./tables"

export const WINDOWS = { "24h": 86_400, "7d": 7 * 86_400 }

export type StatsWindow = keyof typeof WINDOWS

interface Place {
  project_id: string
  webhook_id: string
}

/**
 * Of the deliveries that were planned within the window. `by_status` counts them by the last
 * answer's status, or by why there was none; the times are those of last attempts.
 */
export async function stats(db: Reader, place: Place, window: StatsWindow) {
  const wanted = and(
    eq(deliveries.project_id, place.project_id),
    eq(deliveries.webhook_id, place.webhook_id),
    createdSince(secondsFromNow(-WINDOWS[window])),
  )
  const { status, last_response_status, last_error } = deliveries
  const groups = await db
    .select({
      status,
      last_response_status,
      last_error,
      count: sql<number>`count(*)`,
      attempts: sql<number>`sum(${deliveries.attempts})`,
    })
    .from(deliveries)
    .where(wanted)
    .groupBy(status, last_response_status, last_error)
  const timed = and(wanted, isNotNull(deliveries.latency_ms))
  const [row] = await db.select({ n: sql<number>`count(*)` }).from(deliveries).where(timed)
  const measured = Number(row?.n ?? 0)
  const latencyAt = async (share: number): Promise<number | null> => {
    if (measured === 0) return null
    const sorted = db.select({ ms: deliveries.latency_ms }).from(deliveries).where(timed)
    const place = Math.min(measured - 1, Math.floor(measured * share))
    const [found] = await sorted.orderBy(deliveries.latency_ms).limit(1).offset(place)
    return found?.ms ?? null
  }
  const sum = (list: typeof groups) => list.reduce((all, one) => all + Number(one.count), 0)
  const inState = (...states: string[]) => sum(groups.filter((one) => states.includes(one.status)))
  return {
    attempts: groups.reduce((all, one) => all + Number(one.attempts), 0),
    success: inState("success"),
    failed: inState("failed", "exhausted"),
    held: inState("held"),
    p50_ms: await latencyAt(0.5),
    p95_ms: await latencyAt(0.95),
    by_status: byAnswer(groups),
  }
}

interface Counted {
  last_response_status: number | null
  last_error: string | null
  count: number
}

function byAnswer(groups: Counted[]): Record<string, number> {
  const counts = new Map<string, number>()
  for (const { last_response_status, last_error, count } of groups) {
    const answer = last_response_status ?? last_error
    if (answer === null) continue // not attempted yet
    counts.set(String(answer), (counts.get(String(answer)) ?? 0) + Number(count))
  }
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
}
