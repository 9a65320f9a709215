import { and, eq, isNull, lte, or } from "drizzle-orm"
import { ApiError } from "../core/errors"
import { newId } from "../core/ids"
import { now, secondsFromNow } from "../core/time"
import type { Workers } from "../core/workers"
import { exampleData, record } from "../events/emit"
import type { Caller } from "../identity/caller"
import type { Store, Tx } from "../store/store"
import { attempt, type RequestSettings, receiverOf } from "./attempt"
import { bodyFor, envelopesOf } from "./delivery-body"
import { isInHand } from "./in-hand"
import { type Claimed, leaseSeconds } from "./queue"
import { deliveryOf, plan } from "./route-events"
import { settleAll } from "./settle-deliveries"
import { deliveries } from "./tables"
import * as webhooks from "./webhooks"

/**
 * Plans one example event of this type, for one endpoint alone. Returns the id of its delivery.
 * Every type but `webhook.test` has `simulated: true` in its data.
 */
export async function planTest(
  tx: Tx,
  { account_id, project_id }: Caller,
  webhook_id: string,
  type: string,
): Promise<string> {
  const webhook = await webhooks.find(tx, project_id, webhook_id)
  const plain = { message: "A test of your endpoint.", webhook_id, timestamp: now() }
  const data = type === "webhook.test" ? plain : { ...exampleData(type), simulated: true }
  const event = { account_id, project_id, subject_id: webhook_id, type, data }
  const planned = (await record(tx, [event])).map((one) => deliveryOf(webhook, one, "test"))
  await plan(tx, planned)
  return planned.map(({ id }) => id).join()
}

interface TestParts {
  store: Store
  workers: Workers
  requests: RequestSettings
  /** Failed attempts in a row that disable an endpoint. */
  failures: number
}

/**
 * Attempts one delivery while the request waits, in any status of it and of its endpoint. Returns
 * the answer of the contract. Throws 409 while another attempt runs, or when nothing is left to send.
 */
export async function attemptNow(parts: TestParts, project_id: string, delivery_id: string) {
  const { store, requests, failures } = parts
  const claimed = await claimNow(parts, project_id, delivery_id)
  const webhook = await webhooks.lookup(store.read, project_id, claimed.webhook_id)
  const envelopes = await envelopesOf(store.read, [claimed.event_id])
  const envelope = envelopes.get(claimed.event_id)
  const body = webhook && (await bodyFor(parts, claimed, webhook.transform, envelope))
  if (!webhook || !body)
    throw new ApiError(
      "conflict",
      "The endpoint or its event does not exist any more. There is nothing left to send.",
    )
  const receiver = receiverOf(requests, webhook)
  const outcome = await attempt(requests, receiver, claimed.event_id, body.text)
  const { transform_failed } = body
  await store.tx((tx) => settleAll(tx, [{ claimed, outcome, transform_failed }], failures))
  const { error, response_status, response_body, latency_ms } = outcome
  return {
    delivered: error === null,
    delivery_id,
    response_status,
    response_body,
    duration_ms: latency_ms,
    error: error ?? (transform_failed ? ("transform_failed" as const) : null),
  }
}

async function claimNow(
  { store, requests }: TestParts,
  project_id: string,
  id: string,
): Promise<Claimed> {
  const free = or(isNull(deliveries.owner), lte(deliveries.next_attempt_at, now()))
  const ours = and(eq(deliveries.id, id), eq(deliveries.project_id, project_id), free)
  const next_attempt_at = secondsFromNow(leaseSeconds(requests.timeout_ms))
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
