import { Type as t } from "@sinclair/typebox"
import { codes, type ErrorCode } from "../core/errors"
import { oneOf, optionalText } from "../http/field-schemas"
import { dateFilters, pageQuery } from "../http/page"
import { anything, count, flag, id, maybe, rarely, text, time, word } from "../lib/record-fields"
import { statusesOf } from "../messages/status-changes"
import { SmsInput } from "./sms-input"

/** Of everything that accepts texts (contract 41). */
export const SEND_ERRORS = [
  "invalid_phone_number",
  "sms_not_configured",
  "template_not_found",
  "invalid_template",
  "template_render_failed",
  "subscriber_not_found",
  "suppressed_recipient",
  "payment_required",
  "plan_limit_exceeded",
  "account_frozen",
  "account_throttled",
  "rate_limit_exceeded",
] as const

const NUMBER = "+14155550100"
const BODY = "Your code is 4711."

const status = word(["delivered", ...statusesOf("sms").filter((one) => one !== "delivered")])
const encoding = word(["gsm7", "ucs2"])

const sender = maybe(text("+14155550101", "Null where the provider chooses it."))
const body = maybe(text(BODY, "Null once it is no longer stored."))

const is_test = flag(false, "The provider `log` takes the text, so it never leaves the server.")

export const AcceptedText = t.Object(
  {
    id: id(),
    to: text(NUMBER),
    from: sender,
    body: text(BODY),
    encoding,
    segments: count(1),
    status: t.Literal("queued"),
    is_test,
    scheduled_at: rarely(time()),
    created_at: time(),
  },
  { title: "AcceptedSms" },
)

const listed = {
  id: id(),
  to: text(NUMBER),
  from: sender,
  body,
  segments: count(1),
  status,
  direction: word(["outbound", "inbound"]),
  sent_at: maybe(time()),
  created_at: time(),
}

export const ListedText = t.Object(listed, {
  title: "SmsSummary",
  description: "A text in a list, without timeline.",
})

const TextError = t.Object(
  {
    code: text("provider_error"),
    provider_code: maybe(text("21211", "The provider's own code.")),
    message: text("The number is not valid."),
  },
  { title: "SmsError" },
)

const Price = t.Object(
  { amount: text("0.0075"), currency: text("USD") },
  { title: "SmsPrice", description: "What the provider takes, where it says so." },
)

export const Text = t.Object(
  {
    ...listed,
    encoding,
    tags: t.Array(text("reminder")),
    metadata: anything({ order: "1042" }),
    category: rarely(text("reminders")),
    subscriber_id: rarely(id()),
    provider: maybe(text("twilio")),
    provider_message_id: maybe(text("SM9f86d081884c7d659a2feaa0c55ad015")),
    status_reason: rarely(
      text(
        "unconfirmed",
        "`unconfirmed`: the text left, and the provider has not answered. Nobody sends it again.",
      ),
    ),
    error: rarely(TextError),
    price: rarely(Price),
    is_test,
    in_reply_to: rarely(id("The text that this one answers. Only a text that came in has it.")),
    scheduled_at: rarely(time()),
    queued_at: maybe(time()),
    delivered_at: maybe(time()),
    failed_at: rarely(time()),
    timeline: t.Array(
      t.Object({
        type: text("sms.delivered"),
        timestamp: time(),
        detail: maybe(
          t.Object({
            response: maybe(text("queued")),
            provider_code: maybe(text("30003")),
          }),
        ),
      }),
      { description: "The first 1,000 events of the text, oldest first." },
    ),
    updated_at: time(),
  },
  { title: "Sms" },
)

export const BatchRequest = t.Object({
  messages: t.Array(SmsInput, { minItems: 1, maxItems: 100 }),
})

export const BatchResult = t.Object(
  {
    total: count(2),
    succeeded: count(1),
    failed: count(1),
    results: t.Array(
      t.Union([
        t.Object({
          index: count(0),
          id: id(),
          status: t.Literal("queued"),
          segments: count(1),
        }),
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
  { title: "SmsBatchResult" },
)

export const smsQuery = pageQuery({
  status: t.Optional(oneOf(...statusesOf("sms"))),
  to: optionalText({
    maxLength: 20,
    description:
      "Only texts to this number. With `direction=inbound`: those to this number of ours.",
  }),
  direction: t.Optional(
    t.Union([t.Literal("outbound"), t.Literal("inbound")], {
      description: "Only texts that were sent, or only those that came in.",
    }),
  ),
  tag: optionalText({ maxLength: 100 }),
  ...dateFilters,
})

const LONGEST_INSPECTED = 16_000

export const SegmentsRequest = t.Object({
  body: t.String({ minLength: 1, maxLength: LONGEST_INSPECTED }),
})

export const Segments = t.Object(
  {
    encoding,
    segments: count(1),
    characters: count(18, "In code points."),
    per_segment: count(160, "Characters that one segment of the text holds."),
    offending: t.Array(t.Object({ char: text("“"), index: count(4) }), {
      description: "The first 100 characters that GSM-7 does not have.",
    }),
    gsm7_suggestion: maybe(
      text('"Hi"', "The same text in GSM-7, where it has such a form; else null."),
    ),
  },
  { title: "SmsSegments" },
)
