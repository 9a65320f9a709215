import { Type as t } from "@sinclair/typebox"
import { API_VERSION } from "../events/api-version"
import {
  anything,
  count,
  eventId,
  flag,
  id,
  maybe,
  rarely,
  text,
  time,
  word,
} from "../lib/record-fields"
import { DELIVERY_ERRORS } from "./tables"

export const status = word(["active", "disabled"])
export const deliveryStatus = word(["success", "pending", "failed", "exhausted", "held"])
const deliveryError = word(DELIVERY_ERRORS)

const EVENT_ID = "evt_0199a1c2-7d40-7c3e-9b5a-3f1d2e4c5b6a"
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

const webhook = {
  id: id(),
  project_id: id(),
  url: text("https://example.com/hooks"),
  events: t.Array(text("email.*")),
  description: maybe(text("Orders")),
  headers: t.Record(t.String(), t.String(), { examples: [{ "X-Tenant": "****" }] }),
  header_format: word(["standard", "legacy", "both"]),
  retry_policy: t.Object({
    max_attempts: count(6),
    intervals: t.Array(count(60), {
      examples: [[60, 300, 1800, 7200, 43_200, 86_400]],
      description: "Seconds to wait after each failed attempt. The last value repeats.",
    }),
  }),
  rate_limit: rarely(count(10, "Maximum number of deliveries a second.")),
  filter: rarely(
    anything(
      { field: "data.tags", op: "contains", value: "receipt" },
      "A rule over the envelope. Events that do not match are not sent.",
    ),
  ),
  transform: rarely(text('{"text": "{{type}}"}', "A Handlebars template for the JSON body.")),
  metadata: anything({ team: "orders" }),
  version: t.Literal(API_VERSION),
  status,
  enabled: flag(true),
  secret_hint: text("whsec_…LaSw"),
  consecutive_failures: count(0),
  last_triggered_at: maybe(time()),
  last_success_at: maybe(time()),
  last_failure_at: rarely(time()),
  disabled_at: rarely(time()),
  disabled_reason: rarely(word(["circuit_breaker", "manual", "paused", "gone"])),
  held_count: count(0),
  created_at: time(),
  updated_at: time(),
}

export const Webhook = t.Object(webhook, { title: "Webhook" })

const warning = {
  code: word(["host_not_resolved"]),
  message: text("The host hooks.example.com does not resolve."),
}

const warnings = t.Array(t.Object(warning, { title: "WebhookWarning" }), { examples: [[]] })

export const WithWarnings = t.Object({ ...webhook, warnings }, { title: "WebhookWithWarnings" })

/** A record of a list has no warnings of its own, so they stand beside the list. */
export const webhookListMeta = t.Object({
  warnings: t.Array(t.Object({ webhook_id: id(), ...warning }), { examples: [[]] }),
})

export const WithSecret = t.Object(
  { ...webhook, warnings, secret: text(SECRET, "The signing secret. It cannot be shown again.") },
  { title: "WebhookWithSecret" },
)

export const Rotated = t.Object(
  { secret: text(SECRET), previous_secret_expires_at: maybe(time()) },
  { title: "RotatedWebhookSecret" },
)

export const Tested = t.Object(
  {
    delivered: flag(true),
    delivery_id: id(),
    response_status: maybe(count(200)),
    response_body: maybe(text("ok")),
    duration_ms: count(41),
    error: rarely(deliveryError),
  },
  { title: "WebhookTest" },
)

const delivery = {
  id: id(),
  webhook_id: id(),
  msg_id: eventId("The id of the event, sent as `webhook-id`."),
  event_id: eventId(),
  event_type: text("email.delivered"),
  status: deliveryStatus,
  attempts: count(1),
  max_attempts: count(6),
  next_attempt_at: rarely(time()),
  last_response_status: maybe(count(200)),
  last_error: rarely(deliveryError),
  latency_ms: maybe(count(41)),
  trigger: word(["event", "manual", "replay", "test"]),
  first_attempted_at: maybe(time()),
  last_attempted_at: maybe(time()),
  completed_at: maybe(time()),
  created_at: time(),
}

export const Delivery = t.Object(delivery, { title: "Delivery" })

/** `limit` and `offset` come back where they were asked for. */
export const deliveryMeta = t.Object({
  limit: t.Optional(count(25)),
  offset: t.Optional(count(0)),
})

const headerFields = (example: Record<string, string>) =>
  maybe(t.Record(t.String(), t.String(), { examples: [example] }))

export const DeliveryDetail = t.Object(
  {
    ...delivery,
    payload: t.Unknown({
      examples: [{ id: EVENT_ID, type: "email.delivered" }],
      description: "The body that was sent. Null after the event has expired.",
    }),
    url: maybe(text("https://example.com/hooks")),
    request_headers: headerFields({ "webhook-id": EVENT_ID, "webhook-signature": "****" }),
    response_headers: headerFields({ "content-type": "text/plain" }),
    last_response_body: maybe(text("ok")),
    attempt_log: t.Array(
      t.Object({
        attempt: count(1),
        at: time(),
        response_status: maybe(count(200)),
        error: rarely(deliveryError),
        latency_ms: count(41),
      }),
    ),
  },
  { title: "DeliveryDetail" },
)

export const Stats = t.Object(
  {
    attempts: count(130),
    success: count(120),
    failed: count(2),
    held: count(0),
    p50_ms: maybe(count(40)),
    p95_ms: maybe(count(210)),
    by_status: t.Record(t.String(), t.Integer(), {
      examples: [{ 200: 120, 503: 1, timeout: 1 }],
      description: "Attempts by the status of the answer, or by the error if there was no answer.",
    }),
  },
  { title: "DeliveryStats" },
)
