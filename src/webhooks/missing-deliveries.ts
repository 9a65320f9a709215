import { and, asc, desc, eq, inArray, isNull } from "drizzle-orm"
import { isoFrom, millis, millisFrom } from "../core/time"
import { isTest } from "../events/emit"
import { inFrontOf } from "../events/feed"
import { events } from "../events/tables"
import { hasEnded } from "../jobs/work-item"
import { SKEW_MS } from "../store/rows"
import type { Reader } from "../store/store"
import { asksFor } from "./route-events"
import { deliveries, webhooks } from "./tables"

/** Events of one step. */
const STEP = 500

/** Deliveries of an endpoint that are looked at for one that shows how far back all are kept. */
const OLDEST = 100

/** No limit of the configuration removes a delivery earlier. */
const LEAST_KEPT_MS = 3_600_000

/** An event, and the endpoint that asked for it and has no delivery of it. */
interface MissingDelivery {
  event_id: string
  webhook_id: string
}

/**
 * Looks for events of a project without a delivery to an endpoint that asks for them. Only events are looked
 * at that are newer than the last change of the endpoint, and whose deliveries retention has not removed.
 * Endpoints with a filter are left out: what they ask for is in the data of each event. All reads of `db` have
 * to be of one moment. `since`: no older events; null: all.
 */
export async function* missingDeliveries(
  db: Reader,
  project_id: string,
  { since, pause }: { since: string | null; pause: () => Promise<void> },
): AsyncGenerator<MissingDelivery> {
  const endpoints = await endpointsOf(db, project_id, since)
  const oldest = endpoints.map(({ from }) => from).sort()[0]
  if (oldest === undefined) return
  const { id, position, type, subject_id, created_at } = events
  const columns = { id, position, type, subject_id, created_at }
  // A long transaction on Postgres may have recorded an older event behind a newer one.
  const end = isoFrom(millisFrom(oldest) - SKEW_MS)
  let before: EventRow | undefined
  do {
    const ours = and(eq(events.project_id, project_id), before && inFrontOf(before))
    const next = db.select(columns).from(events).where(ours)
    const rows: EventRow[] = await next.orderBy(desc(position), desc(id)).limit(STEP)
    yield* missingOf(db, endpoints, rows)
    before = rows.length < STEP ? undefined : rows.at(-1)
    await pause()
  } while (before && before.created_at >= end)
}

type EventRow = Pick<
  typeof events.$inferSelect,
  "id" | "position" | "type" | "subject_id" | "created_at"
>

interface LookedAtEndpoint {
  id: string
  events: string[]
  /** Every event recorded later has a delivery, where the endpoint asks for it. ISO 8601. */
  from: string
}

async function endpointsOf(
  db: Reader,
  project_id: string,
  since: string | null,
): Promise<LookedAtEndpoint[]> {
  const { id, events: types, updated_at, filter } = webhooks
  const rows = await db
    .select({ id, events: types, updated_at })
    .from(webhooks)
    .where(and(eq(webhooks.project_id, project_id), isNull(filter)))
  const found: LookedAtEndpoint[] = []
  for (const row of rows) {
    // Another node may have read the endpoint just before, or have another clock.
    const skew = db.isAlone ? 0 : SKEW_MS
    const changed = isoFrom(millisFrom(row.updated_at) + skew)
    const bounds = [changed, await keptSince(db, row.id), ...(since === null ? [] : [since])]
    const from = bounds.sort().at(-1) ?? changed
    found.push({ ...row, from })
  }
  return found
}

/**
 * Since when all deliveries of the endpoint are kept. Retention removes the oldest ended ones first. So one that
 * ended soon after it was made, and that is still there, shows that no later one was removed.
 */
async function keptSince(db: Reader, webhook_id: string): Promise<string> {
  const { id, state, run_at, created_at } = deliveries
  const oldest = db.select({ state, run_at, created_at }).from(deliveries)
  const ours = oldest.where(eq(deliveries.webhook_id, webhook_id))
  const rows = await ours.orderBy(asc(id)).limit(OLDEST)
  const shown = rows.find(
    (row) => hasEnded(row) && millisFrom(row.run_at) - millisFrom(row.created_at) < LEAST_KEPT_MS,
  )
  const least = millis() - LEAST_KEPT_MS
  if (!shown) return isoFrom(least)
  const skew = db.isAlone ? 0 : SKEW_MS
  return isoFrom(Math.min(millisFrom(shown.created_at) + skew, least))
}

async function* missingOf(
  db: Reader,
  endpoints: LookedAtEndpoint[],
  rows: EventRow[],
): AsyncGenerator<MissingDelivery> {
  const asked = rows.flatMap((event) =>
    endpoints
      .filter((endpoint) => isDue(endpoint, event))
      .map((endpoint) => ({ event_id: event.id, webhook_id: endpoint.id })),
  )
  if (asked.length === 0) return
  const { event_id, webhook_id } = deliveries
  const named = inArray(event_id, [...new Set(asked.map((one) => one.event_id))])
  const planned = await db.select({ event_id, webhook_id }).from(deliveries).where(named)
  const known = new Set(planned.map(pairOf))
  const missing = asked.filter((one) => !known.has(pairOf(one)))
  if (missing.length === 0) return
  const ids = inArray(events.id, [...new Set(missing.map((one) => one.event_id))])
  const full = await db.select().from(events).where(ids)
  const tests = new Set(full.filter(isTest).map(({ id }) => id))
  for (const one of missing) if (!tests.has(one.event_id)) yield one
}

const pairOf = ({ event_id, webhook_id }: MissingDelivery) => `${event_id} ${webhook_id}`

/** By its id as well: a clock that was put back makes an earlier event look like a later one. */
const isDue = (endpoint: LookedAtEndpoint, event: EventRow): boolean =>
  event.created_at > endpoint.from &&
  event.id.slice("evt_".length) > endpoint.id &&
  asksFor(endpoint, event)
