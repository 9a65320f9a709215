import { Type as t } from "@sinclair/typebox"
import { aliasOf, notBoth, notOffered, oneOf, optionalText, orNull } from "../http/field-schemas"
import { dateFilters, pageQuery } from "../http/page"
import {
  anything,
  count,
  eventId,
  flag,
  id,
  maybe,
  rarely,
  text as sample,
  time,
  word,
} from "../lib/record-fields"
import { CATEGORY_SLUG } from "../lib/text"
import { scheduledAt } from "../messages/schemas"
import { carriedFields } from "../messages/send-body"
import type { Status } from "../messages/tables"
import { hitSummary, trackingChoice } from "../tracking/schemas"
import { contentFields, MOST_HEADERS, NOT_OFFERED } from "./fields"
import { SendWarnings } from "./render-email"

export const STATUSES: Status[] = [
  "queued",
  "sending",
  "sent",
  "delivered",
  "bounced",
  "complained",
  "failed",
]

const mailbox = t.Object({ email: t.String(), name: t.Optional(t.Union([t.String(), t.Null()])) })
export const address = t.Union([t.String({ maxLength: 998 }), mailbox])

const bytes = t.Array(t.Integer({ minimum: 0, maximum: 255 }), { maxItems: 10_485_760 })

export const attachments = t.Optional(
  t.Array(
    t.Object(
      {
        filename: t.String({ maxLength: 255 }),
        content: t.Optional(
          t.Union([t.String(), bytes, t.Object({ type: t.Literal("Buffer"), data: bytes })], {
            description:
              "The file in strict base64, or its bytes as numbers. Give `content` or `path`.",
          }),
        ),
        path: optionalText({
          description: "https:// URL of a file of at most 10 MB. The server fetches it at once.",
        }),
        content_type: optionalText({
          description: "Without it, the ending of `filename` says it.",
        }),
        content_id: optionalText({
          description: "Makes the file an inline part, to which html refers as `cid:…`.",
        }),
        inline_content_id: aliasOf("content_id", t.String()),
      },
      notBoth("content", "path"),
    ),
    {
      maxItems: 50,
      description: "Decoded attachments, `html` and `text` together may have at most 10 MB.",
    },
  ),
)

/** Of everything that accepts emails (contract 20, 1.3). */
export const SEND_ERRORS = [
  "invalid_email",
  "invalid_url",
  "sender_not_configured",
  "domain_not_verified",
  "template_not_found",
  "invalid_template",
  "template_render_failed",
  "subscriber_not_found",
  "suppressed_recipient",
  "payment_required",
  "plan_limit_exceeded",
  "account_frozen",
  "account_throttled",
  "rate_limited",
] as const

export const SendEmail = t.Object({
  to: t.Union([address, t.Array(address, { minItems: 1, maxItems: 1 })], {
    description: "One address: `a@b.test`, `Name <a@b.test>` or an object.",
  }),
  from: t.Optional(address),
  cc: t.Optional(t.Union([address, t.Array(address, { maxItems: 49 })])),
  bcc: t.Optional(t.Union([address, t.Array(address, { maxItems: 49 })])),
  ...contentFields,
  reply_to: t.Optional(t.Union([address, t.Array(address, { maxItems: 10 })])),
  ...carriedFields,
  headers: t.Optional(
    t.Record(t.String(), t.String({ maxLength: 998 }), {
      maxProperties: MOST_HEADERS,
      description:
        "At most 25 further headers. Headers that the service writes itself are refused.",
    }),
  ),
  attachments,
  category: optionalText({
    pattern: CATEGORY_SLUG,
    description:
      "The kind of mail that this is, such as `newsletter`. The email then has one-click unsubscribe links, and an address that unsubscribed from the category is refused.",
  }),
  subscriber_id: optionalText({
    maxLength: 255,
    description:
      "The id or external id of the subscriber that `to` belongs to. Belfry then obeys its preferences, its quiet hours and the frequency cap, and templates know `subscriber`.",
  }),
  scheduled_at: t.Optional(orNull(scheduledAt())),
  ...trackingChoice,
  ...Object.fromEntries(NOT_OFFERED.map((name) => [name, notOffered()])),
})

export const ResendRequest = t.Object({ to: t.Optional(address) })

export const emailQuery = pageQuery({
  status: t.Optional(t.Union(STATUSES.map((one) => t.Literal(one)))),
  to: optionalText({ maxLength: 254 }),
  from: optionalText({ maxLength: 254 }),
  tag: optionalText({ maxLength: 100 }),
  domain: optionalText({
    maxLength: 253,
    description: "Show only emails from this sender domain.",
  }),
  template_id: optionalText({
    maxLength: 100,
    description: "Show only emails of this template, by id or name.",
  }),
  subject: optionalText({
    maxLength: 998,
    description:
      "Show only emails whose subject contains this text. Upper and lower case make no difference.",
  }),
  stream: t.Optional(oneOf("transactional", "broadcast", "auth")),
  batch_id: optionalText({ maxLength: 36 }),
  subscriber_id: optionalText({
    maxLength: 255,
    description: "Show only emails to this subscriber, by id or external id.",
  }),
  category: optionalText({
    pattern: CATEGORY_SLUG,
    description: "Show only emails of this category.",
  }),
  ...dateFilters,
})

const ADDRESS = "ann@example.com"
const MESSAGE_ID = "<0199a1c2-7d40-7c3e-9b5a-3f1d2e4c5b6a@example.com>"

export const NamedAddress = t.Object(
  { email: sample(ADDRESS), name: maybe(sample("Ann")) },
  { title: "NamedAddress" },
)

const queued = t.Literal("queued")

const accepted = {
  id: id(),
  status: queued,
  rfc_message_id: sample(MESSAGE_ID),
  to: NamedAddress,
  scheduled_at: rarely(time()),
  created_at: time(),
}

export const Accepted = t.Object(accepted, { title: "AcceptedEmail" })

const kind = word(["to", "cc", "bcc"])

export const Resent = t.Object(
  {
    ...accepted,
    recipients: t.Array(t.Object({ email: sample(ADDRESS), kind }), {
      description: "All recipients of the new email.",
    }),
  },
  { title: "ResentEmail" },
)

/** Beside `data`, for clients that look for the id there. */
export const acceptedTop = t.Object({ id: id("The same id as in `data`.") })

export const sendMeta = t.Object({ warnings: SendWarnings })

const status = word(["delivered", ...STATUSES.filter((one) => one !== "delivered")])

const EmailError = t.Object(
  {
    code: sample("provider_error"),
    message: sample("The relay refused the message."),
    smtp_code: maybe(count(550)),
    enhanced_code: maybe(sample("5.7.1")),
  },
  { title: "EmailError" },
)

const listed = {
  id: id(),
  project_id: id(),
  batch_id: rarely(id()),
  rfc_message_id: sample(MESSAGE_ID),
  status,
  status_reason: rarely(sample("cancelled")),
  from: NamedAddress,
  to: NamedAddress,
  cc: t.Array(NamedAddress, { examples: [[]] }),
  bcc: t.Array(NamedAddress, { examples: [[]] }),
  recipients: t.Array(
    t.Object({
      email: sample(ADDRESS),
      kind,
      status,
      status_reason: rarely(t.String()),
    }),
    { description: "Each address of the email, with its status." },
  ),
  reply_to: t.Array(NamedAddress, { examples: [[]] }),
  subject: sample("Your receipt"),
  tags: t.Array(sample("receipt")),
  metadata: anything({ order: "1042" }),
  template: rarely(
    t.Object({ id: id(), name: sample("receipt"), version: count(3) }, { title: "UsedTemplate" }),
  ),
  attachments: t.Array(
    t.Object({
      id: sample("0199a1c2-7d40-7c3e-9b5a-3f1d2e4c5b6b"),
      filename: sample("receipt.pdf"),
      content_type: sample("application/pdf"),
      size: count(48_213, "Size in bytes."),
      sha256: sample("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    }),
  ),
  ...hitSummary,
  last_event: maybe(t.Object({ type: sample("email.delivered"), timestamp: time() })),
  stream: word(["transactional", "broadcast", "auth"]),
  source: word(["api", "smtp", "workflow", "broadcast", "topic", "auth", "inbound_reply"]),
  category: rarely(sample("billing")),
  subscriber_id: rarely(id()),
  api_key_id: maybe(id()),
  idempotency_key: rarely(sample("receipt-1042")),
  provider: maybe(sample("smtp")),
  attempts: count(1),
  next_attempt_at: rarely(time()),
  error: rarely(EmailError),
  thread_id: id("The id of the first email of the conversation. That may be this email."),
  sandbox: flag(false),
  scheduled_at: rarely(time()),
  queued_at: maybe(time()),
  sent_at: maybe(time()),
  delivered_at: maybe(time()),
  bounced_at: rarely(time()),
  created_at: time(),
  updated_at: time(),
}

export const ListedEmail = t.Object(listed, {
  title: "EmailSummary",
  description: "An email in a list, without bodies, headers and timeline.",
})

/** What the other side said: only what is known. */
const codes = { smtp_code: maybe(count(250)), enhanced_code: maybe(sample("2.0.0")) }
const server = { mx: maybe(sample("mx.example.com")), tls: maybe(sample("TLSv1.3")) }
const response = maybe(sample("250 2.0.0 Ok: queued"))

const EventDetail = t.Object({ ...codes, ...server, response }, { title: "EmailEventDetail" })

const html = maybe(sample("<p>Thank you for your order.</p>"))
const text = maybe(sample("Thank you for your order."))
const headers = t.Record(t.String(), t.String(), { examples: [{ "X-Order": "1042" }] })

export const Email = t.Object(
  {
    ...listed,
    html,
    text,
    headers,
    timeline: t.Array(
      t.Object({
        type: sample("email.delivered"),
        timestamp: time(),
        recipient_email: maybe(sample(ADDRESS)),
        detail: maybe(EventDetail),
      }),
      { description: "The first 1,000 events of the email, oldest first." },
    ),
  },
  { title: "Email" },
)

export const EmailContent = t.Object(
  { subject: sample("Your receipt"), html, text, headers },
  { title: "EmailContent" },
)

export const EmailAttempt = t.Object(
  {
    attempt: count(1),
    provider: sample("smtp"),
    started_at: time(),
    duration_ms: count(412),
    outcome: word(["delivered", "sent", "retry", "bounced", "failed", "login_refused"]),
    ...server,
    ...codes,
    response,
    transcript: t.Array(sample("S: 250 2.0.0 Ok: queued"), {
      description: "The SMTP conversation, line by line, without passwords and bodies.",
    }),
  },
  { title: "EmailAttempt" },
)

export const EmailEvent = t.Object({
  id: eventId(),
  type: sample("email.delivered"),
  timestamp: time(),
  recipient_email: maybe(sample(ADDRESS)),
  bounce_type: rarely(word(["Permanent", "Transient"])),
  bounce_subtype: rarely(sample("General")),
  complaint_feedback_type: rarely(sample("abuse")),
  url: rarely(sample("https://example.com/orders/1042")),
  user_agent: rarely(sample("Mozilla/5.0")),
  actor: rarely(word(["human", "machine", "unknown"])),
  detail: EventDetail,
})

export const EmailEvents = t.Object(
  {
    email_id: id(),
    status,
    events: t.Array(EmailEvent, { description: "The first 1,000, oldest first." }),
  },
  { title: "EmailEvents" },
)
