import { Type as t } from "@sinclair/typebox"
import { codes, type ErrorCode } from "../core/errors"
import { PUSH_PROVIDERS } from "../devices/tables"
import { count, id, text, word } from "../lib/record-fields"
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
