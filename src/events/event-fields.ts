type FieldType = "string" | "integer" | "number" | "boolean" | "object" | "array"

/** One member of an event's data. A dotted name is a member of the object in front of the dot. */
export interface EventField {
  name: string
  type: FieldType
  nullable: boolean
  description: string
}

export interface ExampleField extends EventField {
  example: unknown
}

/** Of every example, so that the same question always has the same answer. */
export const EXAMPLE_TIME = "2026-02-01T10:30:00.000Z"

export const EXAMPLE_ID = "0199a1c2-0000-7000-8000-0000000000"

const typeOf = (example: unknown): FieldType => {
  if (Array.isArray(example)) return "array"
  if (typeof example === "number") return Number.isInteger(example) ? "integer" : "number"
  return typeof example as FieldType
}

/** A field that is never null; its type is that of the example. */
export const always = (name: string, example: unknown, description: string): ExampleField => ({
  name,
  type: typeOf(example),
  nullable: false,
  description,
  example,
})

/** A field that may be null, and is in the example unless the type says otherwise. */
export const maybe = (
  name: string,
  description: string,
  example: unknown = null,
  type: FieldType = example === null ? "string" : typeOf(example),
): ExampleField => ({ name, type, nullable: true, description, example })

/** The moment of the fact itself; `created_at` of the envelope is when it was written down. */
export const timestamp = always(
  "timestamp",
  EXAMPLE_TIME,
  "The time of the event itself, ISO 8601.",
)

const metadata = always(
  "metadata",
  { order: "1042" },
  "The metadata that the caller gave, unchanged.",
)

/** The data of an example: every field that stands by itself. */
export const dataOf = (fields: readonly ExampleField[]): Record<string, unknown> =>
  Object.fromEntries(
    fields.filter(({ name }) => !name.includes(".")).map(({ name, example }) => [name, example]),
  )

const first: ExampleField[] = [
  always("message_id", `${EXAMPLE_ID}01`, "The id of the email."),
  maybe("recipient_email", "The recipient that the event is about.", "ann@example.com"),
  timestamp,
  maybe("bounce_type", "`Permanent` or `Transient`. Only for bounces."),
  maybe("bounce_subtype", "The kind of bounce. Only for bounces."),
  maybe("complaint_feedback_type", "The type that the report gives. Only for complaints."),
]

const sent: ExampleField[] = [
  ...first,
  always("tags", ["receipt"], "The tags of the email."),
  metadata,
  maybe("subject", "The subject line.", "Your receipt"),
]

const touched: ExampleField[] = [
  ...sent,
  maybe("url", "The link that was opened. Null for `email.opened`."),
  always(
    "actor",
    "human",
    "`human`, `machine` for scanners and proxies, or `unknown` for programs without a name.",
  ),
  maybe("user_agent", "The user agent of the reader's program.", "Mozilla/5.0"),
]

const failed: ExampleField[] = [
  ...sent,
  always(
    "error",
    { code: "provider_error", message: "The relay refused it." },
    "The reason of the failure.",
  ),
  always("error.code", "provider_error", "A code for programs."),
  always("error.message", "The relay refused it.", "A text for people."),
]

/** The InboundEmail of the API. Its attachments come with an address to fetch them from. */
const inbound = {
  id: `${EXAMPLE_ID}01`,
  project_id: `${EXAMPLE_ID}18`,
  rfc_message_id: "<CAF3k9@mail.example.com>",
  from: { email: "ann@example.com", name: "Ann" },
  to_email: "support+1042@in.example.org",
  envelope: { from: "ann@example.com", to: ["support+1042@in.example.org"] },
  domain: "in.example.org",
  subject: "Re: Your receipt",
  to: [{ email: "support+1042@in.example.org", name: null }],
  cc: [],
  reply_to: [],
  headers: { subject: ["Re: Your receipt"] },
  references: [`<${EXAMPLE_ID}19@example.org>`],
  attachments: [
    {
      id: "0",
      filename: "note.txt",
      content_type: "text/plain",
      size: 12,
      content_id: null,
      disposition: "attachment",
      sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
      url: "https://belfry.example.org/v1/files/example",
      expires_at: "2026-02-01T11:30:00.000Z",
    },
  ],
  reply_to_metadata: null,
  spam: { score: 0, flagged: false, rules: [{ rule: "dmarc_pass", points: -1 }] },
  report: null,
  in_reply_to: `<${EXAMPLE_ID}19@example.org>`,
  replied_to_message_id: `${EXAMPLE_ID}19`,
  mailbox_hash: "1042",
  thread_id: `${EXAMPLE_ID}19`,
  kind: "reply",
  auto_submitted: null,
  spf_verdict: "pass",
  dkim_verdict: "pass",
  dmarc_verdict: "pass",
  arc_verdict: "none",
  verified: true,
  status: "processed",
  parse_error: false,
  truncated: false,
  size: 2048,
  created_at: EXAMPLE_TIME,
  text_body: "Thank you!\n\n> Here is your receipt.",
  html_body: null,
  stripped_text: "Thank you!",
}

const received: ExampleField[] = [
  always("message_id", `${EXAMPLE_ID}01`, "The id of the received mail."),
  always("recipient_email", "support+1042@in.example.org", "The address that received the mail."),
  timestamp,
  always(
    "inbound",
    inbound,
    "The received mail, as `GET /v1/inbound-emails/{inbound_id}` shows it. Each attachment has a `url` for one hour. Beyond 256 KiB the bodies are null, and `truncated` is true.",
  ),
]

const refusal: ExampleField[] = [
  maybe("error_code", "A code for programs. Only for failures."),
  maybe("error_message", "A text for people. Only for failures."),
]

const push: ExampleField[] = [
  always("push_message_id", `${EXAMPLE_ID}02`, "The id of the push message."),
  maybe("provider", "`apns`, `fcm` or `webpush`.", "fcm"),
  timestamp,
  ...refusal,
  maybe("device_id", "The id of the device.", "pixel-7"),
  maybe("user_id", "The user that owns the device.", "user-42"),
  metadata,
]

const sms: ExampleField[] = [
  always("sms_message_id", `${EXAMPLE_ID}03`, "The id of the SMS."),
  always("to", "+14155550101", "The number of the recipient, E.164."),
  maybe(
    "from",
    "The number or name of the sender. Null where the provider chooses it.",
    "+14155550100",
  ),
  timestamp,
  always("segments", 1, "The number of segments."),
  maybe("provider", "The provider of the SMS.", "twilio"),
  ...refusal,
  metadata,
]

const smsReceived: ExampleField[] = [
  ...sms,
  always("body", "STOP", "The text of the SMS."),
  maybe("in_reply_to", "The id of the SMS that it answers. Null if it is not known."),
]

const inbox: ExampleField[] = [
  always("inbox_message_id", `${EXAMPLE_ID}04`, "The id of the inbox message."),
  always("subscriber_id", `${EXAMPLE_ID}05`, "The subscriber that owns the inbox."),
  always("external_id", "user-42", "The subscriber's id in your own system."),
  timestamp,
  maybe("category", "The category of the message.", "billing"),
  metadata,
]

const inboxAction: ExampleField[] = [
  ...inbox,
  always("action_key", "primary", "The action that was used."),
]

const where = {
  ip_address: "192.0.2.7",
  session_id: `${EXAMPLE_ID}08`,
  environment: "live",
}

const user: ExampleField[] = [
  always("application_id", `${EXAMPLE_ID}06`, "The application that the user belongs to."),
  always("user", { id: `${EXAMPLE_ID}07`, email: "ann@example.com" }, "The end user."),
  always("user.id", `${EXAMPLE_ID}07`, "The user's id."),
  maybe("user.email", "The user's email address. Null if there is none.", "ann@example.com"),
  always("metadata", where, "Those of the fields below that apply. The others are absent."),
  maybe("metadata.provider", "The method of the sign-in."),
  maybe("metadata.ip_address", "The IP address of the request."),
  maybe("metadata.session_id", "The id of the session."),
  maybe("metadata.mfa_method", "`totp`, `sms`, `email` or a recovery code."),
  maybe("metadata.environment", "`live` or `test`."),
  maybe("metadata.organization_id", "The active organization."),
  maybe("metadata.actor_id", "The person that acted, if it was not the user."),
  maybe("metadata.reason", "The reason of the event."),
]

const subscriber: ExampleField[] = [
  maybe("subscriber_id", "The id of the subscriber. Null if it is not known.", `${EXAMPLE_ID}05`),
  maybe("external_id", "The subscriber's id in your own system.", "user-42"),
  always("channel", "email", "`email`, `push`, `sms` or `in_app`."),
  always(
    "scope",
    { type: "category", key: "newsletter" },
    "The messages that the change is about.",
  ),
  always(
    "scope.type",
    "category",
    "`project` (the whole channel), `category`, `topic` or `broadcast`.",
  ),
  maybe("scope.key", "The key of the category or topic. Else null.", "newsletter"),
  maybe("reason", "The way of the change: page, one click, API, STOP or START.", "one_click"),
  timestamp,
]

const suppression: ExampleField[] = [
  always("id", `${EXAMPLE_ID}09`, "The id of the entry in the suppression list."),
  always("channel", "email", "`email` or `sms`."),
  always("address", "ann@example.com", "The address that gets no more messages."),
  always("reason", "bounce", "`bounce`, `complaint`, `unsubscribe` or `manual`."),
  always("origin", "event", "`event`, `api`, `console`, `import` or `page`."),
  timestamp,
]

const domain: ExampleField[] = [
  always("id", `${EXAMPLE_ID}11`, "The id of the domain."),
  always("domain", "example.com", "The name of the domain."),
  always("status", "verified", "`verified`, `failed` or `degraded`."),
  always("records_verified", 4, "The number of DNS records that were found."),
  always("records_total", 4, "The number of DNS records that the domain needs."),
  maybe("verified_at", "The time of the verification. Null on failure.", EXAMPLE_TIME),
]

const degraded: ExampleField[] = [
  ...domain,
  always("missing", ["dkim"], "The DNS records that are missing."),
]

const workflow: ExampleField[] = [
  always("execution_id", `${EXAMPLE_ID}13`, "The id of the execution."),
  always("workflow_id", `${EXAMPLE_ID}14`, "The id of the workflow."),
  always("workflow_key", "welcome", "The key of the workflow."),
  maybe("subscriber_id", "The subscriber that it ran for.", `${EXAMPLE_ID}05`),
  maybe("transaction_id", "The transaction id of the trigger.", "tx-1042"),
  always("status", "completed", "The result of the execution."),
  maybe("error", "The reason of the failure.", null, "object"),
  timestamp,
]

const broadcast: ExampleField[] = [
  always("broadcast_id", `${EXAMPLE_ID}15`, "The id of the broadcast."),
  always("name", "November news", "The name of the broadcast."),
  always("status", "completed", "`completed` or `paused`."),
  maybe("reason", "The reason of the pause: canary, reputation or a person."),
  always("counts", { sent: 4980, failed: 20 }, "The results."),
  timestamp,
]

const disabled: ExampleField[] = [
  always("webhook_id", `${EXAMPLE_ID}16`, "The endpoint that was disabled."),
  always("url", "https://example.com/hooks", "The URL of the endpoint."),
  always("reason", "circuit_breaker", "`circuit_breaker`, `gone`, `manual` or `paused`."),
  always("consecutive_failures", 10, "The number of failed attempts in a row."),
  timestamp,
]

const test: ExampleField[] = [
  always("message", "A test of your endpoint.", "A text for people."),
  always("webhook_id", `${EXAMPLE_ID}16`, "The endpoint that is tested."),
  timestamp,
]

/** The fields of every type, by type or by the word in front of its dot. */
export const fieldsByType: Record<string, ExampleField[]> = {
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
  user,
  subscriber,
  suppression,
  domain,
  "domain.degraded": degraded,
  workflow,
  broadcast,
  "webhook.disabled": disabled,
  "webhook.test": test,
}

/** Where an example says more than its fields do by themselves. */
export const examplesByType: Record<string, Record<string, unknown>> = {
  "email.bounced": { bounce_type: "Permanent", bounce_subtype: "General" },
  "email.soft_bounced": { bounce_type: "Transient", bounce_subtype: "MailboxFull" },
  "email.complained": { complaint_feedback_type: "abuse" },
  "email.clicked": { url: "https://example.com/orders/1042" },
  "push.failed": { error_code: "invalid_token", error_message: "The token is not valid any more." },
  "sms.undelivered": { error_code: "30005", error_message: "The number is not in use." },
  "sms.failed": { error_code: "21211", error_message: "The number is not valid." },
  "sms.received": { to: "+14155550100", from: "+14155550101", metadata: {} },
  "user.login": { metadata: { ...where, provider: "password" } },
  "user.created": { metadata: { ...where, provider: "password" } },
  "user.mfa_enabled": { metadata: { ...where, mfa_method: "totp" } },
  "user.mfa_disabled": { metadata: { ...where, mfa_method: "totp" } },
  "user.session_revoked": { metadata: { ...where, reason: "token_reuse" } },
  "user.impersonated": {
    metadata: { ...where, actor_id: `${EXAMPLE_ID}10`, reason: "A question to support." },
  },
  "subscriber.resubscribed": { reason: "page" },
  "suppression.deleted": { reason: "manual" },
  "domain.verification_failed": { status: "failed", records_verified: 2, verified_at: null },
  "domain.degraded": { status: "degraded", records_verified: 3 },
  "workflow.execution_failed": {
    status: "failed",
    error: { code: "template_render_failed", message: "A variable is missing." },
  },
  "broadcast.paused": { status: "paused", reason: "canary" },
}
