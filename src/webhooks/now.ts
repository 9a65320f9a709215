import { and, eq, isNull, lte, or } from "drizzle-orm"
import { ApiError } from "../core/errors"
import { newId } from "../core/ids"
import { now, secondsFromNow } from "../core/time"
import type { Workers } from "../core/workers"
import type { Store } from "../store/store"
import { attempt, receiverOf, type Way } from "./attempt"
import { bodiesOf, bodyFor } from "./body"
import { isInHand } from "./in-hand"
import { type Claimed, leaseSeconds } from "./queue"
import { settleAll } from "./settle"
import { type DeliveryError, deliveries, webhooks } from "./tables"

export interface AttemptResult {
  delivered: boolean
  delivery_id: string
  response_status: number | null
  response_body: string | null
  duration_ms: number
  error: DeliveryError | null
}

export interface Delivering {
  store: Store
  workers: Workers
  way: Way
  /** Failed attempts in a row that disable an endpoint. */
  failures: number
}

/**
 * Attempts one delivery while its asker waits, in whatever status it and its endpoint are. Throws
 * 409 while another attempt runs, or when there is nothing left to send.
 */
export async function attemptNow(
  parts: Delivering,
  project_id: string,
  delivery_id: string,
): Promise<AttemptResult> {
  const { store, way, failures } = parts
  const claimed = await take(parts, project_id, delivery_id)
  const which = eq(webhooks.id, claimed.webhook_id)
  const [webhook] = await store.read.select().from(webhooks).where(which)
  const plain = (await bodiesOf(store.read, [claimed.event_id])).get(claimed.event_id)
  const body = webhook && (await bodyFor(parts, claimed, webhook.transform, plain))
  if (!webhook || !body)
    throw new ApiError(
      "conflict",
      "The endpoint or its event does not exist any more. There is nothing left to send.",
    )
  const attempted = await attempt(way, receiverOf(way, webhook), claimed.event_id, body.text)
  const { transform_failed } = body
  await store.tx((tx) => settleAll(tx, [{ claimed, attempted, transform_failed }], failures))
  return {
    delivered: attempted.error === null,
    delivery_id,
    response_status: attempted.response_status,
    response_body: attempted.response_body,
    duration_ms: attempted.latency_ms,
    error: attempted.error ?? (transform_failed ? "transform_failed" : null),
  }
}

async function take({ store, way }: Delivering, project_id: string, id: string): Promise<Claimed> {
  const free = or(isNull(deliveries.owner), lte(deliveries.next_attempt_at, now()))
  const ours = and(eq(deliveries.id, id), eq(deliveries.project_id, project_id), free)
  const next_attempt_at = secondsFromNow(leaseSeconds(way.timeout_ms))
  const lease = { status: "pending" as const, owner: newId(), next_attempt_at }
  const [row] = await store.tx(async (tx) => {
    if (isInHand(id)) return []
    return await tx.update(deliveries).set(lease).where(ours).returning()
  })
  if (!row)
    throw new ApiError(
      "conflict",
      "An attempt of this delivery is running. Wait for its end, and try again.",
    )
  return row
}
