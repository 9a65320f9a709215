import { eq, inArray } from "drizzle-orm"
import { newId } from "../core/ids"
import { millis, millisFrom, now, secondsFromNow } from "../core/time"
import type { Recorded } from "../events/emit"
import { envelopeOf } from "../events/feed"
import { matchesType } from "../events/registry"
import { matches, type Rule } from "../lib/filter-rule"
import { engine } from "../store/columns"
import { onChanged } from "../store/group-commit"
import { heldForShare } from "../store/locks"
import { inserter, prepared } from "../store/statements"
import type { Tx } from "../store/store"
import { ringPlanned } from "./bell"
import { heldUntil } from "./held"
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

/** Writes deliveries of `deliveryOf`, and wakes the delivery loop once they are on disk. */
export async function plan(tx: Tx, planned: NewDelivery[]): Promise<void> {
  if (planned.length === 0) return
  await insertDeliveries(tx, planned)
  tx.afterCommit(ringPlanned)
}

type Endpoint = Omit<Awaited<ReturnType<typeof selectEndpoints>>[number], "updated_at">

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
    // The request that asks for a test attempts it; the loop finds it only if that process died.
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
 * Projects without endpoints, so that those who want no webhooks pay nothing for them. Only where no
 * other process can add one, and as of a commit: what a group saw that failed is not remembered.
 */
const without = engine === "sqlite" ? new Set<string>() : undefined
const MOST_REMEMBERED = 10_000

if (without) onChanged(["webhooks"], () => without.clear())

async function endpointsOf(tx: Tx, project_id: string): Promise<Endpoint[]> {
  if (without?.has(project_id)) return []
  const found = await current(tx, project_id)
  if (without && found.length === 0) {
    tx.afterCommit(() => remember(without, project_id)) // of a group that fails nothing is true
  }
  if (engine === "sqlite" || found.every(({ status }) => status === "active")) return found
  // An activation waits for us here: it must not miss what we are about to hold for the endpoint.
  const active = found.filter(({ status }) => status === "active")
  const others = found.filter(({ status }) => status !== "active").map(({ id }) => id)
  return [...active, ...(await lockedFor(tx, others))]
}

function remember(projects: Set<string>, project_id: string) {
  if (projects.size >= MOST_REMEMBERED) projects.clear()
  projects.add(project_id)
}

interface Known {
  updated_at: string
  endpoint: Endpoint
}

const known = new Map<string, Known>()

/** A change in the same millisecond as the one before could not be told from it. */
const SETTLED_MILLISECONDS = 1000

/** Reads the patterns and filters again of those only whose rows say that they changed. */
async function current(tx: Tx, project: string): Promise<Endpoint[]> {
  const states = await selectStates(tx, { project_id: project })
  if (states.length === 0) return []
  const fresh = states.every(({ id, updated_at }) => known.get(id)?.updated_at === updated_at)
  if (fresh) return states.flatMap(({ id }) => known.get(id)?.endpoint ?? [])
  const rows = await selectEndpoints(tx, { project_id: project })
  if (known.size + rows.length > MOST_REMEMBERED) known.clear()
  for (const { updated_at, ...endpoint } of rows) {
    const settled = millisFrom(updated_at) < millis() - SETTLED_MILLISECONDS
    if (settled) known.set(endpoint.id, { updated_at, endpoint })
  }
  return rows
}

const insertDeliveries = inserter(deliveries, { quiet: true }) // see `ahead`

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

/** By id alone: what we waited for may have changed the status. */
const lockedFor = (tx: Tx, ids: string[]) =>
  heldForShare(tx.select(columns).from(webhooks).where(inArray(id, ids)).orderBy(id))
