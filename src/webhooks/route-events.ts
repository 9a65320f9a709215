import { eq, inArray } from "drizzle-orm"
import { newId } from "../core/ids"
import { now, secondsFromNow } from "../core/time"
import type { Recorded } from "../events/emit"
import { envelopeOf } from "../events/feed"
import { matches, type Rule } from "../lib/rule"
import { engine } from "../store/columns"
import { onChanged } from "../store/group-commit"
import { heldForShare, inserter, prepared } from "../store/statements"
import type { Tx } from "../store/store"
import { ringPlanned } from "./bell"
import { heldUntil } from "./hold"
import { matchesType } from "./patterns"
import { deliveries, type Trigger, webhooks } from "./tables"

const DISABLED = "webhook.disabled"

/** Plans a delivery for each event and each endpoint that wants it, in the events' transaction. */
export async function routeEvents(tx: Tx, recorded: readonly Recorded[]): Promise<void> {
  const planned: NewDelivery[] = []
  for (const project_id of new Set(recorded.map((event) => event.project_id))) {
    const endpoints = await endpointsOf(tx, project_id)
    if (endpoints.length === 0) continue
    const ours = recorded.filter((event) => event.project_id === project_id)
    for (const event of ours) {
      const wanting = endpoints.filter((endpoint) => wants(endpoint, event))
      planned.push(...wanting.map((endpoint) => deliveryOf(endpoint, event, "event")))
    }
  }
  await plan(tx, planned)
}

export type NewDelivery = typeof deliveries.$inferInsert & { id: string }

/** Writes deliveries of `deliveryOf`, and wakes whoever delivers once they are on disk. */
export async function plan(tx: Tx, planned: NewDelivery[]): Promise<void> {
  if (planned.length === 0) return
  await insertDeliveries(tx, planned)
  tx.afterCommit(ringPlanned)
}

type Endpoint = Awaited<ReturnType<typeof selectEndpoints>>[number]

const TEST_SECONDS = 120

/** The row of a delivery: due at once, or held while the endpoint is disabled (tests never are). */
export function deliveryOf(
  endpoint: Pick<Endpoint, "id" | "status" | "retry_policy">,
  event: Pick<Recorded, "id" | "project_id" | "type">,
  trigger: Trigger,
): NewDelivery {
  const test = trigger === "test"
  const waits = endpoint.status !== "active" && !test
  const created_at = now()
  return {
    id: newId(),
    project_id: event.project_id,
    webhook_id: endpoint.id,
    event_id: event.id,
    event_type: event.type,
    trigger,
    status: waits ? "held" : "pending",
    attempts: 0,
    max_attempts: test ? 1 : endpoint.retry_policy.max_attempts,
    by_hand: test,
    // A test is attempted by whoever asked for it; the loop would only find it if he died.
    next_attempt_at: waits ? heldUntil() : test ? secondsFromNow(TEST_SECONDS) : created_at,
    attempt_log: [],
    created_at,
  }
}

/** Whether the endpoint asked for the event: by type, filter, and not of itself being disabled. */
export function wants(
  endpoint: Pick<Endpoint, "id" | "events" | "filter">,
  event: Recorded,
): boolean {
  if (!matchesType(endpoint.events, event.type)) return false
  // Contract 30.5: never to the endpoint that was disabled, which could not take it.
  if (event.type === DISABLED && event.subject_id === endpoint.id) return false
  return endpoint.filter === null || matches(endpoint.filter as unknown as Rule, envelopeOf(event))
}

/**
 * Projects without endpoints, so that those who want no webhooks pay nothing for them. Only where
 * no other process can add one; what it says of a group that is still open was true when read.
 */
const without = engine === "sqlite" ? new Set<string>() : undefined
const MOST_REMEMBERED = 10_000

if (without) onChanged(["webhooks"], () => without.clear())

async function endpointsOf(tx: Tx, project_id: string): Promise<Endpoint[]> {
  if (without?.has(project_id)) return []
  const found = await selectEndpoints(tx, { project_id })
  if (without && found.length === 0) {
    if (without.size >= MOST_REMEMBERED) without.clear()
    without.add(project_id)
  }
  if (engine === "sqlite" || found.every(({ status }) => status === "active")) return found
  // Who activates an endpoint must not miss what we are about to hold for it: he waits for us.
  const active = found.filter(({ status }) => status === "active")
  const others = found.filter(({ status }) => status !== "active").map(({ id }) => id)
  return [...active, ...(await lockedFor(tx, others))]
}

const insertDeliveries = inserter(deliveries)

const { id, project_id, events, filter, status, retry_policy } = webhooks
const columns = { id, events, filter, status, retry_policy }

const selectEndpoints = prepared({ project_id }, (tx: Tx, slot) =>
  tx.select(columns).from(webhooks).where(eq(project_id, slot.project_id)),
)

/** By id alone: what we waited for may have changed the status. */
const lockedFor = (tx: Tx, ids: string[]) =>
  heldForShare(tx.select(columns).from(webhooks).where(inArray(id, ids)).orderBy(id))
