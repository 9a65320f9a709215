import { sql } from "drizzle-orm"
import type { API_VERSION } from "../events/registry"
import { workColumns, workIndexes } from "../jobs/tables"
import { DEAD, HELD, OVER, READY } from "../jobs/work-item"
import {
  bool,
  eventRef,
  id,
  index,
  int,
  json,
  primaryKey,
  ref,
  table,
  text,
  time,
} from "../store/columns"
import { life } from "../store/life"

type HeaderFormat = "standard" | "legacy" | "both"
export type WebhookStatus = "active" | "disabled"
export type DisabledReason = "circuit_breaker" | "manual" | "paused" | "gone"
export type DeliveryStatus = "pending" | "failed" | "success" | "exhausted" | "held"
export const STATE_OF: Record<DeliveryStatus, number> = {
  pending: READY,
  failed: READY,
  held: HELD,
  success: OVER,
  exhausted: DEAD,
}

export type Trigger = "event" | "manual" | "replay" | "test"

export const DELIVERY_ERRORS = [
  "timeout",
  "dns",
  "tls",
  "connection",
  "http_status",
  "blocked_address",
  "transform_failed",
  "gone",
  "backlog_limit",
] as const

export type DeliveryError = (typeof DELIVERY_ERRORS)[number]

export interface RetryPolicy {
  max_attempts: number
  /** Seconds; the last one repeats. */
  intervals: number[]
}

/** One line of a delivery's log, in the words of the answer. */
export interface AttemptEntry {
  attempt: number
  at: string
  response_status: number | null
  error: DeliveryError | null
  latency_ms: number
}

export const webhooks = table(
  "webhooks",
  {
    id: id(),
    account_id: ref().notNull(),
    project_id: ref().notNull(),
    url: text().notNull(),
    /** Registered types, `prefix.*`, or `*`. */
    events: json<string[]>().notNull(),
    description: text(),
    /** The names of custom headers, each with a mask in place of its value. */
    headers: json<Record<string, string>>().notNull(),
    sealed_headers: text(), // names and values, as JSON; null where there are none
    header_format: text().$type<HeaderFormat>().notNull(),
    retry_policy: json<RetryPolicy>().notNull(),
    /** Deliveries a second. */
    rate_limit: int(),
    filter: json<Record<string, unknown> | null>(),
    transform: text(),
    metadata: json<Record<string, unknown>>().notNull(),
    version: text().$type<typeof API_VERSION>().notNull(),
    secret: text().notNull(), // sealed
    secret_hint: text().notNull(),
    previous_secret: text(), // sealed
    previous_secret_expires_at: time(),
    status: text().$type<WebhookStatus>().notNull(),
    disabled_reason: text().$type<DisabledReason>(),
    disabled_at: time(),
    consecutive_failures: int().notNull(),
    last_triggered_at: time(),
    last_success_at: time(),
    last_failure_at: time(),
    /** When the host was last looked up in vain; null once it had an address. */
    unresolved_at: time(),
    /** With a rate limit: when the next delivery may leave, on whichever node. */
    next_slot_at: time(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (webhook) => [index("webhooks_by_project").on(webhook.project_id, webhook.id)],
)
export type WebhookRow = typeof webhooks.$inferSelect

const ROTATE = "`belfry webhooks rotate ID --now`, and give the receiver the new secret"
life(webhooks, {
  owner: "project",
  ends: "never",
  sealed: {
    secret: { what: "signing secrets of webhooks", remedy: ROTATE },
    previous_secret: {
      what: "signing secrets that are being replaced",
      remedy: ROTATE,
      drop: "value",
      as: "secret",
    },
    sealed_headers: {
      what: "custom headers of webhooks",
      remedy: "`belfry webhooks update ID` with the headers",
      drop: "value",
      as: "headers",
    },
  },
  counts: { name: "webhooks" },
})

/** One event for one endpoint: its work columns, and the capture of its last attempt. */
export const deliveries = table(
  "webhook_deliveries",
  {
    id: id(),
    project_id: ref().notNull(),
    webhook_id: ref().notNull(),
    event_id: eventRef().notNull(),
    event_type: text().notNull(),
    trigger: text().$type<Trigger>().notNull(),
    status: text().$type<DeliveryStatus>().notNull(),
    /** `run_at`: when the next attempt is due; held: until when; over: when it ended. */
    ...workColumns(),
    /** Attempts that have ended. `attempt` also counts those that a dead process had begun. */
    attempts: int().notNull(),
    max_attempts: int().notNull(),
    /** The next attempt was asked for by hand: it is made in every status, and does not count for the breaker. */
    by_hand: bool().notNull(),
    /** The body, where it is not the plain envelope: transformed once, the same on every attempt. */
    body: text(),
    url: text(),
    request_headers: json<Record<string, string> | null>(),
    response_headers: json<Record<string, string> | null>(),
    last_response_body: text(),
    last_response_status: int(),
    last_error: text().$type<DeliveryError>(),
    latency_ms: int(),
    attempt_log: json<AttemptEntry[]>().notNull(),
    first_attempted_at: time(),
    last_attempted_at: time(),
    created_at: time().notNull(),
  },
  (delivery) => [
    index("webhook_deliveries_by_webhook").on(delivery.webhook_id, delivery.id),
    index("webhook_deliveries_by_event").on(delivery.event_id, delivery.webhook_id),
    ...workIndexes("webhook_deliveries", delivery, delivery.webhook_id).slice(0, 3),
    index("webhook_deliveries_held_by_endpoint")
      .on(delivery.webhook_id, delivery.run_at)
      .where(sql`state = 3 AND owner IS NULL`),
    index("webhook_deliveries_held_by_name")
      .on(delivery.owner, delivery.id)
      .where(sql`state = 3 AND owner IS NOT NULL`),
  ],
)
life(deliveries, {
  owner: "project",
  ends: "webhook_deliveries_days",
  names: { event_id: "events" },
})

/**
 * How many deliveries an endpoint has. The shards keep writers on Postgres from waiting for one row.
 */
export const webhookTotals = table(
  "webhook_totals",
  {
    webhook_id: ref().notNull(),
    shard: int().notNull(),
    project_id: ref().notNull(),
    deliveries: int().notNull(),
    /** Those that have not ended: pending, failed and held. */
    open: int().notNull(),
    /** Those that wait for the endpoint to be active again. */
    held: int().notNull(),
  },
  (total) => [
    primaryKey({ columns: [total.webhook_id, total.shard] }),
    index("webhook_totals_by_project").on(total.project_id),
  ],
)
life(webhookTotals, { owner: "project", ends: "never" })

/** The attempts of an endpoint that ended in an hour, by their answer, and by how long they took. */
export const webhookHours = table(
  "webhook_hours",
  {
    webhook_id: ref().notNull(),
    /** Hours since 1970. */
    hour: int().notNull(),
    /** A status or an error; or `ms:` and the longest time that counts for this row. */
    name: text().notNull(),
    shard: int().notNull(),
    count: int().notNull(),
  },
  (row) => [
    primaryKey({ columns: [row.webhook_id, row.hour, row.name, row.shard] }),
    index("webhook_hours_by_hour").on(row.hour, row.webhook_id),
  ],
)
life(webhookHours, { owner: "project", ends: "after 7 days" })
