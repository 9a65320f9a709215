import { Type as t } from "@sinclair/typebox"
import { API_VERSION } from "../events/api-version"
import { aliasOf } from "../http/field-names"
import { pageQuery } from "../http/page"
import { nameText, oneOf, orNull } from "../http/texts"

const MOST_PATTERNS = 100
const MOST_ATTEMPTS = 10
const LONGEST_INTERVAL = 86_400
const MOST_A_SECOND = 1000
const LONGEST_URL = 2048
const LONGEST_DESCRIPTION = 500
const LONGEST_TRANSFORM = 65_536

const headerFormat = oneOf("standard", "legacy", "both")
const status = oneOf("active", "disabled")
const deliveryStatus = oneOf("pending", "failed", "success", "exhausted", "held")
const trigger = oneOf("event", "manual", "replay", "test")

const RetryPolicy = t.Object({
  max_attempts: t.Optional(t.Integer({ minimum: 1, maximum: MOST_ATTEMPTS, default: 6 })),
  intervals: t.Optional(
    t.Array(t.Integer({ minimum: 1, maximum: LONGEST_INTERVAL }), {
      minItems: 1,
      maxItems: 10,
      description: "Seconds behind each failed attempt; the last one repeats.",
    }),
  ),
})

const fields = {
  // How long it may be is judged with the rest of it, so that each fault of it is `invalid_url`.
  url: t.String({ description: `https://, at most ${LONGEST_URL} characters.` }),
  events: t.Array(t.String({ maxLength: 64 }), {
    minItems: 1,
    maxItems: MOST_PATTERNS,
    description:
      "Types, `prefix.*`, or `*`. `email.delivery_delayed` is taken as `email.soft_bounced`.",
  }),
  description: orNull(nameText(LONGEST_DESCRIPTION)),
  headers: t.Record(t.String(), t.String(), { description: "Up to 20, sent along." }),
  header_format: headerFormat,
  retry_policy: RetryPolicy,
  rate_limit: t.Union([t.Integer({ minimum: 1, maximum: MOST_A_SECOND }), t.Null()], {
    description: "Deliveries a second.",
  }),
  filter: t.Union([t.Record(t.String(), t.Unknown()), t.Null()], {
    description: "A rule over the envelope.",
  }),
  transform: t.Union([t.String({ minLength: 1, maxLength: LONGEST_TRANSFORM }), t.Null()], {
    description: "A Handlebars text that gives the JSON body.",
  }),
  metadata: t.Record(t.String(), t.Unknown()),
  version: t.Literal(API_VERSION),
}

export const NewWebhook = t.Object({
  url: fields.url,
  endpoint: aliasOf("url", fields.url),
  events: fields.events,
  description: t.Optional(fields.description),
  headers: t.Optional(fields.headers),
  header_format: t.Optional(fields.header_format),
  retry_policy: t.Optional(fields.retry_policy),
  rate_limit: t.Optional(fields.rate_limit),
  filter: t.Optional(fields.filter),
  transform: t.Optional(fields.transform),
  metadata: t.Optional(fields.metadata),
  version: t.Optional(fields.version),
  secret: t.Optional(t.String({ maxLength: 128, description: "`whsec_` and 24–64 bytes." })),
  status: t.Optional(t.Unknown({ description: "Only as it is: `enabled` changes it." })),
})

export const WebhookPatch = t.Composite([
  t.Partial(t.Omit(NewWebhook, ["secret"])),
  t.Object({
    enabled: t.Optional(t.Boolean({ description: "false pauses, true activates." })),
  }),
])

const moment = orNull(t.String())

export const Webhook = t.Object({
  id: t.String(),
  project_id: t.String(),
  ...fields,
  retry_policy: t.Required(RetryPolicy),
  status,
  enabled: t.Boolean(),
  secret_hint: t.String(),
  consecutive_failures: t.Integer(),
  last_triggered_at: moment,
  last_success_at: moment,
  last_failure_at: moment,
  disabled_at: moment,
  disabled_reason: t.Union([oneOf("circuit_breaker", "manual", "paused", "gone"), t.Null()]),
  held_count: t.Integer(),
  created_at: t.String(),
  updated_at: t.String(),
})

export const WithSecret = t.Composite([Webhook, t.Object({ secret: t.String() })])

export const webhookQuery = pageQuery({ status: t.Optional(status) })

export const Rotation = t.Object({
  expire_previous_now: t.Optional(t.Boolean({ default: false })),
})

export const Rotated = t.Object({ secret: t.String(), previous_secret_expires_at: moment })

export const Enabling = t.Object({ replay: t.Optional(oneOf("held", "none")) })

export const Test = t.Object({
  event_type: t.Optional(t.String({ maxLength: 64, default: "webhook.test" })),
})

export const Tested = t.Object({
  delivered: t.Boolean(),
  delivery_id: t.String(),
  response_status: t.Union([t.Integer(), t.Null()]),
  response_body: orNull(t.String()),
  duration_ms: t.Integer(),
  error: orNull(t.String()),
})

export const Delivery = t.Object({
  id: t.String(),
  webhook_id: t.String(),
  msg_id: t.String({ description: "As `webhook-id`: the id of the event." }),
  event_id: t.String(),
  event_type: t.String(),
  status: deliveryStatus,
  attempts: t.Integer(),
  max_attempts: t.Integer(),
  next_attempt_at: moment,
  last_response_status: t.Union([t.Integer(), t.Null()]),
  last_error: orNull(t.String()),
  latency_ms: t.Union([t.Integer(), t.Null()]),
  trigger,
  first_attempted_at: moment,
  last_attempted_at: moment,
  completed_at: moment,
  created_at: t.String(),
})

const headerFields = t.Union([t.Record(t.String(), t.String()), t.Null()])

export const DeliveryDetail = t.Composite([
  Delivery,
  t.Object({
    payload: t.Unknown({ description: "The body; null once the event expired." }),
    url: orNull(t.String()),
    request_headers: headerFields,
    response_headers: headerFields,
    last_response_body: orNull(t.String()),
    attempt_log: t.Array(
      t.Object({
        attempt: t.Integer(),
        at: t.String(),
        response_status: t.Union([t.Integer(), t.Null()]),
        error: orNull(t.String()),
        latency_ms: t.Integer(),
      }),
    ),
  }),
])

export const deliveryQuery = pageQuery({
  status: t.Optional(deliveryStatus),
  event_type: t.Optional(t.String({ maxLength: 64 })),
  event_id: t.Optional(t.String({ maxLength: 64 })),
  since: t.Optional(t.String({ description: "Created then or later." })),
  offset: t.Optional(t.Integer({ minimum: 0, description: "With limit: rows to leave out." })),
})

const span = {
  event_types: t.Optional(fields.events),
  since: t.Optional(t.String()),
  until: t.Optional(t.String({ description: "Exclusive." })),
}

export const BulkRetry = t.Object({
  status: t.Optional(t.Array(oneOf("failed", "exhausted"), { minItems: 1, maxItems: 2 })),
  ...span,
})

export const Replay = t.Object({
  ...span,
  since: t.String(),
  status: t.Optional(oneOf("held", "failed", "all")),
})

export const statsQuery = t.Object({
  window: t.Optional(oneOf("24h", "7d")),
})

export const Stats = t.Object({
  attempts: t.Integer(),
  success: t.Integer(),
  failed: t.Integer(),
  held: t.Integer(),
  p50_ms: t.Union([t.Integer(), t.Null()]),
  p95_ms: t.Union([t.Integer(), t.Null()]),
  by_status: t.Record(t.String(), t.Integer()),
})
