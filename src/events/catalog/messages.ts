import { always, EXAMPLE_ID, EXAMPLE_TIME, maybe, metadata, type Shown, timestamp } from "./field"

const first: Shown[] = [
  always("message_id", `${EXAMPLE_ID}01`, "The id of the email."),
  maybe("recipient_email", "string", "The recipient that the event is about.", "ann@example.com"),
  timestamp,
  maybe("bounce_type", "string", "`Permanent` or `Transient`. Only for bounces."),
  maybe("bounce_subtype", "string", "The kind of bounce. Only for bounces."),
  maybe(
    "complaint_feedback_type",
    "string",
    "The type that the report gives. Only for complaints.",
  ),
]

const sent: Shown[] = [
  ...first,
  always("tags", ["receipt"], "The tags of the email."),
  metadata,
  maybe("subject", "string", "The subject line.", "Your receipt"),
]

const touched: Shown[] = [
  ...sent,
  maybe("url", "string", "The link that was opened. Null for `email.opened`."),
  always("actor", "human", "`human`, or `machine` for scanners and proxies."),
  maybe("user_agent", "string", "The user agent of the reader's program.", "Mozilla/5.0"),
]

const failed: Shown[] = [
  ...sent,
  always(
    "error",
    { code: "provider_error", message: "The relay refused it." },
    "The reason of the failure.",
  ),
  always("error.code", "provider_error", "A code for programs."),
  always("error.message", "The relay refused it.", "A text for people."),
]

/** The InboundEmail of the API, shortened: attachments come with an address to fetch them from. */
const inbound = {
  id: `${EXAMPLE_ID}01`,
  from: { email: "ann@example.com", name: "Ann" },
  to_email: "support@in.example.org",
  to: ["support@in.example.org"],
  subject: "Re: Your receipt",
  text_body: "Thank you!",
  html_body: null,
  attachments: [
    {
      id: "0",
      filename: "note.txt",
      content_type: "text/plain",
      size: 12,
      url: "https://belfry.example.org/v1/files/example",
      expires_at: "2026-02-01T11:30:00.000Z",
    },
  ],
  truncated: false,
  created_at: EXAMPLE_TIME,
}

const received: Shown[] = [
  ...first,
  always("inbound", inbound, "The inbound email. Its bodies have at most 256 KiB together."),
]

const push: Shown[] = [
  always("push_message_id", `${EXAMPLE_ID}02`, "The id of the push message."),
  maybe("provider", "string", "`apns`, `fcm` or `webpush`.", "fcm"),
  timestamp,
  maybe("error_code", "string", "A code for programs. Only for failures."),
  maybe("error_message", "string", "A text for people. Only for failures."),
  maybe("device_id", "string", "The id of the device.", "pixel-7"),
  maybe("user_id", "string", "The user that owns the device.", "user-42"),
  metadata,
]

const sms: Shown[] = [
  always("sms_message_id", `${EXAMPLE_ID}03`, "The id of the SMS."),
  always("to", "+14155550101", "The number of the recipient, E.164."),
  always("from", "+14155550100", "The number or name of the sender."),
  timestamp,
  always("segments", 1, "The number of segments."),
  maybe("provider", "string", "The provider of the SMS.", "twilio"),
  maybe("error_code", "string", "A code for programs. Only for failures."),
  maybe("error_message", "string", "A text for people. Only for failures."),
  metadata,
]

const smsReceived: Shown[] = [
  ...sms,
  always("body", "STOP", "The text of the SMS."),
  maybe("in_reply_to", "string", "The id of the SMS that it answers. Null if it is not known."),
]

const inbox: Shown[] = [
  always("inbox_message_id", `${EXAMPLE_ID}04`, "The id of the inbox message."),
  always("subscriber_id", `${EXAMPLE_ID}05`, "The subscriber that owns the inbox."),
  always("external_id", "user-42", "The subscriber's id in your own system."),
  timestamp,
  maybe("category", "string", "The category of the message.", "billing"),
  metadata,
]

const inboxAction: Shown[] = [
  ...inbox,
  always("action_key", "primary", "The action that was used."),
]

/** The fields of every type about a message, by type or by the word in front of its dot. */
export const messageFields: Record<string, Shown[]> = {
  email: sent,
  "email.opened": touched,
  "email.clicked": touched,
  "email.failed": failed,
  "email.received": received,
  push,
  sms,
  "sms.received": smsReceived,
  inbox,
  "inbox.action": inboxAction,
}

/** Where an example says more than its fields do by themselves. */
export const messageExamples: Record<string, Record<string, unknown>> = {
  "email.bounced": { bounce_type: "Permanent", bounce_subtype: "General" },
  "email.soft_bounced": { bounce_type: "Transient", bounce_subtype: "MailboxFull" },
  "email.complained": { complaint_feedback_type: "abuse" },
  "email.clicked": { url: "https://example.com/orders/1042" },
  "email.received": { recipient_email: "support@in.example.org" },
  "push.failed": { error_code: "invalid_token", error_message: "The token is not valid any more." },
  "sms.undelivered": { error_code: "30005", error_message: "The number is not in use." },
  "sms.failed": { error_code: "21211", error_message: "The number is not valid." },
  "sms.received": { to: "+14155550100", from: "+14155550101", metadata: {} },
}
