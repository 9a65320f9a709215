import { and, eq, inArray, sql } from "drizzle-orm"
import type { API_VERSION } from "../events/api-version"
import type { Reader } from "../store/store"
import { deliveries, webhooks } from "./tables"

export type WebhookRow = typeof webhooks.$inferSelect
export type DeliveryRow = typeof deliveries.$inferSelect

export type Webhook = ReturnType<typeof record>

/** The Webhook record of the contract: all but its secrets. */
export const record = (row: WebhookRow, held_count: number) => ({
  id: row.id,
  project_id: row.project_id,
  url: row.url,
  events: row.events,
  description: row.description,
  headers: row.headers,
  header_format: row.header_format,
  retry_policy: row.retry_policy,
  rate_limit: row.rate_limit,
  filter: row.filter,
  transform: row.transform,
  metadata: row.metadata,
  version: row.version as typeof API_VERSION,
  status: row.status,
  enabled: row.status === "active",
  secret_hint: row.secret_hint,
  consecutive_failures: row.consecutive_failures,
  last_triggered_at: row.last_triggered_at,
  last_success_at: row.last_success_at,
  last_failure_at: row.last_failure_at,
  disabled_at: row.disabled_at,
  disabled_reason: row.disabled_reason,
  held_count,
  created_at: row.created_at,
  updated_at: row.updated_at,
})

/** How many deliveries of each endpoint are held; an endpoint without any is not in the map. */
export async function heldCounts(db: Reader, ids: string[]): Promise<Map<string, number>> {
  if (ids.length === 0) return new Map()
  const { webhook_id } = deliveries
  // As a literal: a bound value would keep the database from using the partial index.
  const rows = await db
    .select({ webhook_id, count: sql<number>`count(*)` })
    .from(deliveries)
    .where(and(inArray(webhook_id, ids), sql`status = 'held'`))
    .groupBy(webhook_id)
  return new Map(rows.map(({ webhook_id, count }) => [webhook_id, Number(count)]))
}

/** The record of one endpoint as it is now. */
export async function shown(db: Reader, row: WebhookRow): Promise<Webhook> {
  const counts = await heldCounts(db, [row.id])
  return record(row, counts.get(row.id) ?? 0)
}

/** The Delivery record of the contract. */
export const deliveryRecord = (row: DeliverySummary) => ({
  id: row.id,
  webhook_id: row.webhook_id,
  msg_id: row.event_id,
  event_id: row.event_id,
  event_type: row.event_type,
  status: row.status,
  attempts: row.attempts,
  max_attempts: row.max_attempts,
  next_attempt_at: plannedAt(row),
  last_response_status: row.last_response_status,
  last_error: row.last_error,
  latency_ms: row.latency_ms,
  trigger: row.trigger,
  first_attempted_at: row.first_attempted_at,
  last_attempted_at: row.last_attempted_at,
  completed_at: row.completed_at,
  created_at: row.created_at,
})

/** The column also says until when something is held, or when a running attempt counts as lost. */
const plannedAt = ({ status, owner, next_attempt_at }: DeliverySummary) =>
  owner === null && status !== "held" ? next_attempt_at : null

/** The columns of a list: without bodies and captures, which are large. */
export const summary = {
  id: deliveries.id,
  webhook_id: deliveries.webhook_id,
  event_id: deliveries.event_id,
  event_type: deliveries.event_type,
  status: deliveries.status,
  attempts: deliveries.attempts,
  max_attempts: deliveries.max_attempts,
  next_attempt_at: deliveries.next_attempt_at,
  owner: deliveries.owner,
  last_response_status: deliveries.last_response_status,
  last_error: deliveries.last_error,
  latency_ms: deliveries.latency_ms,
  trigger: deliveries.trigger,
  first_attempted_at: deliveries.first_attempted_at,
  last_attempted_at: deliveries.last_attempted_at,
  completed_at: deliveries.completed_at,
  created_at: deliveries.created_at,
}

type DeliverySummary = Pick<DeliveryRow, keyof typeof summary>

/** Of this project and no other. */
export const ours = (project_id: string, id: string) =>
  and(eq(webhooks.project_id, project_id), eq(webhooks.id, id))
