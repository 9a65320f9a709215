import { eq, inArray } from "drizzle-orm"
import { newId } from "../core/ids"
import { now, secondsFromNow } from "../core/time"
import { matchesType, type Recorded, setRouter } from "../events/emit"
import { envelopeOf } from "../events/feed"
import { HELD, READY } from "../jobs/work-item"
import { matches, type Rule } from "../lib/filter-rule"
import { perStore } from "../store/cached"
import { forShare } from "../store/columns"
import { inserter, prepared } from "../store/statements"
import type { Tx } from "../store/store"
import { backlogsOf } from "./delivery-picker"
import { deliveryWakeUp } from "./delivery-rows"
import { addStored, bodyBytes, countAll, ROW_BYTES } from "./endpoint-counts"
import { heldUntil } from "./held"
import { EndpointCache } from "./receiver"
import { deliveries, type Trigger, webhooks } from "./tables"

const DISABLED = "webhook.disabled"

/** From here on every event that this process records is routed to the endpoints that want it. */
export const startRouting = () => setRouter(routeEvents)

/** Plans a delivery of each event to each endpoint that asked for it, in the events' transaction. */
async function routeEvents(tx: Tx, recorded: readonly Recorded[]): Promise<void> {
  const planned: NewDelivery[] = []
  for (const project_id of new Set(recorded.map((event) => event.project_id))) {
    const endpoints = await endpointsOf(tx, project_id)
    if (endpoints.length === 0) continue
    const ours = recorded.filter((event) => event.project_id === project_id)
    for (const event of ours) {
      const subscribed = endpoints.filter((endpoint) => subscribesTo(endpoint, event))
      planned.push(...subscribed.map((endpoint) => deliveryOf(endpoint, event, "event")))
    }
  }
  await plan(tx, planned)
}

type NewDelivery = typeof deliveries.$inferInsert & { id: string }

/** Writes deliveries of `deliveryOf`, and wakes the delivery loop once they are on disk. */
export async function plan(tx: Tx, planned: NewDelivery[]): Promise<void> {
  if (planned.length === 0) return
  await insertDeliveries(tx, planned)
  await countAll(tx, planned.map(newTotals))
  const stored = planned.map(({ project_id, body }) => {
    return { project_id, bytes: ROW_BYTES + bodyBytes(body) }
  })
  await addStored(tx, stored)
  tx.afterCommit(() => {
    backlogsOf(tx).planned(planned.map(({ webhook_id }) => webhook_id))
    deliveryWakeUp(tx).wakeUp()
  })
}

const newTotals = ({ project_id, webhook_id, state }: NewDelivery) => ({
  ...{ project_id, webhook_id },
  ...{ deliveries: 1, open: 1, held: state === HELD ? 1 : 0 },
})

type SubscribedEndpoint = Awaited<ReturnType<typeof selectEndpoints>>[number]

const TEST_SECONDS = 120

/** The row of a delivery: due at once, or held while the endpoint is disabled (tests never are). */
export function deliveryOf(
  endpoint: Pick<SubscribedEndpoint, "id" | "status" | "retry_policy">,
  event: Pick<Recorded, "id" | "project_id" | "type">,
  trigger: Trigger,
): NewDelivery {
  const test = trigger === "test"
  const is_held = endpoint.status !== "active" && !test
  const created_at = now()
  return {
    id: newId(),
    project_id: event.project_id,
    webhook_id: endpoint.id,
    event_id: event.id,
    event_type: event.type,
    trigger,
    status: is_held ? "held" : "pending",
    state: is_held ? HELD : READY,
    // The request that asks for a test attempts it. The loop does so only if that process died.
    run_at: is_held ? heldUntil() : test ? secondsFromNow(TEST_SECONDS) : created_at,
    attempt: 0,
    owner: null,
    lease_until: null,
    attempts: 0,
    max_attempts: test ? 1 : endpoint.retry_policy.max_attempts,
    by_hand: test,
    attempt_log: [],
    created_at,
  }
}

/** Whether the endpoint asked for the event: by type, filter, and not of itself being disabled. */
export function subscribesTo(
  endpoint: Pick<SubscribedEndpoint, "id" | "events" | "filter">,
  event: Recorded,
): boolean {
  if (!asksFor(endpoint, event)) return false
  return endpoint.filter === null || matches(endpoint.filter as unknown as Rule, envelopeOf(event))
}

export function asksFor(
  endpoint: Pick<SubscribedEndpoint, "id" | "events">,
  event: Pick<Recorded, "type" | "subject_id">,
): boolean {
  // Contract 30.5: never to the endpoint that was disabled, which could not take it.
  if (event.type === DISABLED && event.subject_id === endpoint.id) return false
  return matchesType(endpoint.events, event.type)
}

/**
 * Projects without endpoints, so that they cost nothing. Only where no other process can add one,
 * and as of a commit: a group that fails is not remembered.
 */
const withoutOf = perStore((db) => {
  const without = db.isAlone ? new Set<string>() : undefined
  if (without) db.onChanged(["webhooks"], () => without.clear())
  return without
})

const MOST_CACHED = 10_000

/** The endpoints of a project, which stay as they are until the transaction ends. */
export async function endpointsOf(tx: Tx, project_id: string): Promise<SubscribedEndpoint[]> {
  const without = withoutOf(tx)
  if (without?.has(project_id)) return []
  const found = await current(tx, project_id)
  if (without && found.length === 0) {
    tx.afterCommit(() => remember(without, project_id))
  }
  if (tx.isAlone || found.every(({ status }) => status === "active")) return found
  // An activation waits for this lock, so that it does not miss what is about to be held.
  const active = found.filter(({ status }) => status === "active")
  const others = found.filter(({ status }) => status !== "active").map(({ id }) => id)
  return [...active, ...(await lockedFor(tx, others))]
}

function remember(projects: Set<string>, project_id: string) {
  if (projects.size >= MOST_CACHED) projects.clear()
  projects.add(project_id)
}

const cache = new EndpointCache<SubscribedEndpoint>()

/** Reads only the ids and versions, unless one of the endpoints has changed. */
async function current(tx: Tx, project: string): Promise<SubscribedEndpoint[]> {
  const states = await selectStates(tx, { project_id: project })
  const cached = states.flatMap((state) => cache.get(state) ?? [])
  if (cached.length === states.length) return cached
  const rows = await selectEndpoints(tx, { project_id: project })
  for (const row of rows) cache.set(row, row)
  return rows
}

const insertDeliveries = inserter(deliveries, { quiet: true }) // see `jobs/in-flight.ts`

const { id, project_id, events, filter, status, retry_policy } = webhooks
const columns = { id, events, filter, status, retry_policy, updated_at: webhooks.updated_at }

const selectStates = prepared({ project_id }, (tx: Tx, slot) =>
  tx
    .select({ id, updated_at: webhooks.updated_at })
    .from(webhooks)
    .where(eq(project_id, slot.project_id)),
)

const selectEndpoints = prepared({ project_id }, (tx: Tx, slot) =>
  tx.select(columns).from(webhooks).where(eq(project_id, slot.project_id)),
)

/** By id alone: the transaction before may have changed the status. */
const lockedFor = (tx: Tx, ids: string[]) =>
  forShare(tx.select(columns).from(webhooks).where(inArray(id, ids)).orderBy(id))
