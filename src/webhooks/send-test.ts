import { fail } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import { exampleData, record } from "../events/emit"
import type { Caller } from "../identity/caller"
import { claimsOf } from "../jobs/claims"
import type { Tx } from "../store/store"
import { type ClaimedDelivery, deliveryRows } from "./delivery-rows"
import { bodyFor, type DeliveryParts, envelopesOf } from "./delivery-work"
import { attempt, receiverOf } from "./receiver"
import { deliveryOf, plan } from "./route-events"
import { type EndedAttempt, settleDeliveries } from "./settle-deliveries"
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

/** Longer than an attempt can take, with its result written. */
const LEASE_MARGIN_MILLISECONDS = 60_000

/**
 * Attempts one delivery while the request waits, in any status of it and of its endpoint. Returns
 * the answer of the contract. Throws 409 while another attempt runs, or when nothing is left to send.
 */
export async function attemptNow(parts: DeliveryParts, project_id: string, delivery_id: string) {
  const { store, requests, failures } = parts
  const lease_ms = requests.timeout_ms + LEASE_MARGIN_MILLISECONDS
  const lease = { owner: newId(), lease_ms, alone: store.isAlone }
  const claims = claimsOf(store, { rows: deliveryRows }, lease)
  const row = await claims.claimOne(delivery_id)
  if (!row)
    fail("conflict", "An attempt of this delivery is running. Wait for its end, and try again.")
  try {
    const end = await attemptRow(parts, project_id, row)
    await store.tx(async (tx) => {
      const settled = { row, end, after: row, reason: null }
      if ((await claims.held(tx, [row])).has(row)) await settleDeliveries(tx, [settled], failures)
    })
    claims.end(row)
    return resultOf(row, end)
  } catch (error) {
    await claims.release([row])
    throw error
  }
}

async function attemptRow(
  parts: DeliveryParts,
  project_id: string,
  row: ClaimedDelivery,
): Promise<EndedAttempt> {
  const { store, requests } = parts
  const webhook = await webhooks.lookup(store.read, project_id, row.webhook_id)
  const envelopes = await envelopesOf(store.read, [row.event_id])
  const envelope = envelopes.get(row.event_id)
  const body = webhook && (await bodyFor(parts, row, webhook.transform, envelope))
  if (!webhook || !body) {
    const message =
      "The endpoint or its event does not exist any more. There is nothing left to send."
    return fail("conflict", message)
  }
  const { text, transform_failed } = body
  const receiver = receiverOf(requests, webhook)
  return { outcome: await attempt(requests, receiver, row.event_id, text), transform_failed }
}

const resultOf = ({ id }: ClaimedDelivery, { outcome, transform_failed }: EndedAttempt) => ({
  delivered: outcome.error === null,
  delivery_id: id,
  response_status: outcome.response_status,
  response_body: outcome.response_body,
  duration_ms: outcome.latency_ms,
  error: outcome.error ?? (transform_failed ? ("transform_failed" as const) : null),
})
