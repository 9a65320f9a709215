import { Type as t } from "@sinclair/typebox"
import { codes, type ErrorCode } from "../core/errors"
import { PLATFORMS, PUSH_PROVIDERS } from "../devices/tables"
import { oneOf, optionalText } from "../http/field-schemas"
import { dateFilters, pageQuery } from "../http/page"
import { anything, count, flag, id, maybe, rarely, text, time, word } from "../lib/record-fields"
import { statusesOf } from "../messages/status-changes"
import { PushInput } from "./push-input"

/** Of everything that accepts push messages (contract 40). */
export const SEND_ERRORS = [
  "device_not_found",
  "subscriber_not_found",
  "push_not_configured",
  "template_not_found",
  "invalid_template",
  "template_render_failed",
  "invalid_url",
  "conflict",
  "payment_required",
  "plan_limit_exceeded",
  "account_frozen",
  "account_throttled",
  "rate_limit_exceeded",
] as const

const status = word(["queued", ...statusesOf("push").filter((one) => one !== "queued")])

const SentMessage = t.Object({
  id: id(),
  device_id: text("pixel-7"),
  provider: word(PUSH_PROVIDERS),
  status,
})

export const PushSend = t.Object(
  {
    id: id(
      "With several devices it is the `batch_id` of the messages, else the id of the message.",
    ),
    status: t.Literal("queued"),
    devices: count(1),
    messages: t.Array(SentMessage, { description: "One message a device." }),
  },
  { title: "PushSend" },
)

const ActionButton = t.Object(
  { id: text("open"), label: text("Open"), url: maybe(text("/tables/7")) },
  { title: "PushActionButton" },
)

const listed = {
  id: id(),
  user_id: maybe(text("user-42")),
  device_id: text("pixel-7"),
  platform: maybe(word(PLATFORMS)),
  provider: maybe(word(PUSH_PROVIDERS)),
  title: maybe(text("Your table is ready", "Null once it is no longer stored, as all content.")),
  body: maybe(text("We hold it for 10 minutes.")),
  data: maybe(anything({ table: "7" })),
  tags: t.Array(text("table")),
  status,
  queued_at: maybe(time()),
  sent_at: maybe(time()),
  delivered_at: maybe(time()),
  created_at: time(),
}

export const ListedPush = t.Object(listed, {
  title: "PushSummary",
  description: "A push message in a list, without timeline.",
})

export const PushMessage = t.Object(
  {
    ...listed,
    batch_id: rarely(id("The send that it is one of several messages of.")),
    subscriber_id: rarely(id()),
    action_buttons: t.Array(ActionButton),
    badge: rarely(t.Union([count(3), t.Literal("unread")])),
    sound: rarely(text("default")),
    image_url: rarely(text("https://example.com/table.png")),
    icon: rarely(text("https://example.com/icon.png")),
    url: maybe(text("/tables/7")),
    content_available: flag(false),
    collapse_id: rarely(text("table-7")),
    ttl_seconds: count(2_419_200),
    priority: maybe(word(["high", "normal"])),
    metadata: anything({ order: "1042" }),
    provider_message_id: maybe(text("projects/app/messages/0:1500415314455276")),
    status_reason: rarely(text("unregistered")),
    error_code: rarely(text("unregistered")),
    provider_code: rarely(text("UNREGISTERED", "The provider's own word.")),
    error_message: rarely(text("The app was removed from the device.")),
    scheduled_at: rarely(time()),
    expires_at: time("The end of its time to live."),
    failed_at: rarely(time()),
    opened_at: rarely(time()),
    events: t.Array(
      t.Object({
        type: text("push.delivered"),
        timestamp: time(),
        detail: maybe(
          t.Object({ response: maybe(text("410 Gone")), provider_code: maybe(text("410")) }),
        ),
      }),
      { description: "Its events and what its device told, oldest first." },
    ),
  },
  { title: "PushMessage" },
)

export const BatchRequest = t.Object({
  messages: t.Array(PushInput, { minItems: 1, maxItems: 100 }),
})

export const BatchResult = t.Object(
  {
    total: count(2),
    succeeded: count(1),
    failed: count(1),
    results: t.Array(
      t.Union([
        t.Object({ index: count(0), id: id(), messages: t.Array(SentMessage) }),
        t.Object({
          index: count(1),
          error: t.Object({
            code: t.Unsafe<ErrorCode>(t.String({ enum: Object.keys(codes) })),
            message: t.String(),
            details: t.Record(t.String(), t.Unknown()),
          }),
        }),
      ]),
      { description: "One result for each message, in the order of the request." },
    ),
  },
  { title: "PushBatchResult" },
)

export const pushQuery = pageQuery({
  status: t.Optional(oneOf(...statusesOf("push"))),
  user_id: optionalText({ maxLength: 255, description: "Only those to devices of this user." }),
  device_id: optionalText({
    maxLength: 255,
    description: "Only those to this device: its name, or its id.",
  }),
  platform: t.Optional(word(PLATFORMS, "Only those to devices of this platform.")),
  tag: optionalText({ maxLength: 100 }),
  batch_id: optionalText({ maxLength: 100, description: "Only those of this send." }),
  ...dateFilters,
})
