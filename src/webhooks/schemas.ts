import { Type as t } from "@sinclair/typebox"
import { API_VERSION } from "../events/registry"
import { aliasOf, metadataObject, nameText, oneOf, orNull } from "../http/field-schemas"
import { pageQuery } from "../http/page"
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

export const MOST_HEADERS = 20
const MOST_PATTERNS = 100
const MOST_ATTEMPTS = 10
const LONGEST_INTERVAL = 86_400
const MOST_A_SECOND = 1000
const LONGEST_URL = 2048
const LONGEST_DESCRIPTION = 500
const LONGEST_TRANSFORM = 65_536

const webhookStatus = word(["active", "disabled"])
const deliveryStatus = word(["success", "pending", "failed", "exhausted", "held"])
const deliveryError = word(DELIVERY_ERRORS)

const INTERVALS = "Seconds to wait after each failed attempt. The last value repeats."
const FILTER = "A rule over the envelope. Events that do not match are not sent."
const TRANSFORM = "A Handlebars template for the JSON body."
const RATE_LIMIT = "Maximum number of deliveries a second."

const fields = {
  // The length is checked with the rest of the URL, so that each of its faults is `invalid_url`.
  url: t.String({ description: `An https:// URL of at most ${LONGEST_URL} characters.` }),
  events: t.Array(t.String({ maxLength: 64 }), {
    minItems: 1,
    maxItems: MOST_PATTERNS,
    description:
      "Event types, `prefix.*` for a group, or `*` for all. `email.delivery_delayed` means `email.soft_bounced`.",
  }),
  description: orNull(nameText(LONGEST_DESCRIPTION)),
  headers: t.Record(t.String(), t.String(), {
    maxProperties: MOST_HEADERS,
    description:
      "Up to 20 headers for each delivery. Answers show `****` for a value. If you send `****` back, the value stays.",
  }),
  header_format: oneOf("standard", "legacy", "both"),
  retry_policy: t.Object({
    max_attempts: t.Optional(t.Integer({ minimum: 1, maximum: MOST_ATTEMPTS, default: 6 })),
    intervals: t.Optional(
      t.Array(t.Integer({ minimum: 1, maximum: LONGEST_INTERVAL }), {
        minItems: 1,
        maxItems: 10,
        description: INTERVALS,
      }),
    ),
  }),
  rate_limit: t.Union([t.Integer({ minimum: 1, maximum: MOST_A_SECOND }), t.Null()], {
    description: RATE_LIMIT,
  }),
  filter: t.Union([t.Record(t.String(), t.Unknown()), t.Null()], {
    description: FILTER,
  }),
  transform: t.Union([t.String({ minLength: 1, maxLength: LONGEST_TRANSFORM }), t.Null()], {
    description: TRANSFORM,
  }),
  metadata: metadataObject("Your own data, at most 50 keys and 16 KiB."),
  version: t.Literal(API_VERSION),
}

export const EndpointFieldsInput = t.Object(fields)

const { url, events, ...optional } = fields

export const NewWebhook = t.Object({
  url,
  endpoint: aliasOf("url", url),
  events,
  ...t.Partial(t.Object(optional)).properties,
  secret: t.Optional(
    t.String({
      maxLength: 128,
      description: "`whsec_` and the base64 of 24 to 64 bytes (default: a new secret).",
    }),
  ),
  status: t.Optional(
    t.Unknown({ description: "The current status. To change it, set `enabled`." }),
  ),
})

/** A `secret` is refused with words of its own, so that it must not be left out. */
export const WebhookPatch = t.Composite(
  [
    t.Partial(t.Omit(NewWebhook, ["secret"])),
    t.Object({
      enabled: t.Optional(
        t.Boolean({ description: "`false` pauses the endpoint, `true` makes it active." }),
      ),
    }),
  ],
  { additionalProperties: true },
)

export const webhookQuery = pageQuery({ status: t.Optional(webhookStatus) })

export const Rotation = t.Object({
  expire_previous_now: t.Optional(t.Boolean({ default: false })),
})

export const Enabling = t.Object({ replay: t.Optional(oneOf("held", "none")) })

export const Test = t.Object({
  event_type: t.Optional(t.String({ maxLength: 64, default: "webhook.test" })),
})

export const deliveryQuery = pageQuery({
  status: t.Optional(deliveryStatus),
  event_type: t.Optional(t.String({ maxLength: 64 })),
  event_id: t.Optional(t.String({ maxLength: 64 })),
  since: t.Optional(t.String({ description: "Only deliveries created at this time or later." })),
  offset: t.Optional(
    t.Integer({ minimum: 0, description: "Number of rows to skip. Use it with `limit`." }),
  ),
})

const span = {
  event_types: t.Optional(events),
  since: t.Optional(t.String()),
  until: t.Optional(t.String({ description: "Only events before this time." })),
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
      description: INTERVALS,
    }),
  }),
  rate_limit: rarely(count(10, RATE_LIMIT)),
  filter: rarely(anything({ field: "data.tags", op: "contains", value: "receipt" }, FILTER)),
  transform: rarely(text('{"text": "{{type}}"}', TRANSFORM)),
  metadata: anything({ team: "orders" }),
  version: t.Literal(API_VERSION),
  status: webhookStatus,
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

export const WebhookWarning = t.Object(warning, { title: "WebhookWarning" })

const warnings = t.Array(WebhookWarning, { examples: [[]] })

export const WithWarnings = t.Object({ ...webhook, warnings }, { title: "WebhookWithWarnings" })

/** A record of a list has no warnings of its own, so the meta of the list has them. */
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
    attempts: count(122),
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
