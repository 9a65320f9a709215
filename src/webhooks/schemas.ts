import { Type as t } from "@sinclair/typebox"
import { API_VERSION } from "../events/api-version"
import { aliasOf } from "../http/field-names"
import { pageQuery } from "../http/page"
import { nameText, oneOf, orNull } from "../http/texts"
import * as records from "./record-schemas"

const MOST_PATTERNS = 100
const MOST_ATTEMPTS = 10
const LONGEST_INTERVAL = 86_400
const MOST_A_SECOND = 1000
const LONGEST_URL = 2048
const LONGEST_DESCRIPTION = 500
const LONGEST_TRANSFORM = 65_536

const headerFormat = oneOf("standard", "legacy", "both")

const RetryPolicy = t.Object({
  max_attempts: t.Optional(t.Integer({ minimum: 1, maximum: MOST_ATTEMPTS, default: 6 })),
  intervals: t.Optional(
    t.Array(t.Integer({ minimum: 1, maximum: LONGEST_INTERVAL }), {
      minItems: 1,
      maxItems: 10,
      description: "Seconds to wait after each failed attempt. The last value repeats.",
    }),
  ),
})

const fields = {
  // How long it may be is judged with the rest of it, so that each fault of it is `invalid_url`.
  url: t.String({ description: `An https:// URL of at most ${LONGEST_URL} characters.` }),
  events: t.Array(t.String({ maxLength: 64 }), {
    minItems: 1,
    maxItems: MOST_PATTERNS,
    description:
      "Event types, `prefix.*` for a group, or `*` for all. `email.delivery_delayed` means `email.soft_bounced`.",
  }),
  description: orNull(nameText(LONGEST_DESCRIPTION)),
  headers: t.Record(t.String(), t.String(), {
    description:
      "Up to 20 headers for each delivery. Answers show `****` for a value. If you send `****` back, the value stays.",
  }),
  header_format: headerFormat,
  retry_policy: RetryPolicy,
  rate_limit: t.Union([t.Integer({ minimum: 1, maximum: MOST_A_SECOND }), t.Null()], {
    description: "Maximum number of deliveries a second.",
  }),
  filter: t.Union([t.Record(t.String(), t.Unknown()), t.Null()], {
    description: "A rule over the envelope. Events that do not match are not sent.",
  }),
  transform: t.Union([t.String({ minLength: 1, maxLength: LONGEST_TRANSFORM }), t.Null()], {
    description: "A Handlebars template for the JSON body.",
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

export const WebhookPatch = t.Composite([
  t.Partial(t.Omit(NewWebhook, ["secret"])),
  t.Object({
    enabled: t.Optional(
      t.Boolean({ description: "`false` pauses the endpoint, `true` makes it active." }),
    ),
  }),
])

export const webhookQuery = pageQuery({ status: t.Optional(records.status) })

export const Rotation = t.Object({
  expire_previous_now: t.Optional(t.Boolean({ default: false })),
})

export const Enabling = t.Object({ replay: t.Optional(oneOf("held", "none")) })

export const Test = t.Object({
  event_type: t.Optional(t.String({ maxLength: 64, default: "webhook.test" })),
})

export const deliveryQuery = pageQuery({
  status: t.Optional(records.deliveryStatus),
  event_type: t.Optional(t.String({ maxLength: 64 })),
  event_id: t.Optional(t.String({ maxLength: 64 })),
  since: t.Optional(t.String({ description: "Only deliveries created at this time or later." })),
  offset: t.Optional(
    t.Integer({ minimum: 0, description: "Number of rows to skip. Use it with `limit`." }),
  ),
})

const span = {
  event_types: t.Optional(fields.events),
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
