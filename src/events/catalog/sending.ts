import { always, EXAMPLE_ID, EXAMPLE_TIME, maybe, type Shown, timestamp } from "./field"

const domain: Shown[] = [
  always("id", `${EXAMPLE_ID}11`, "The id of the domain."),
  always("domain", "example.com", "The name of the domain."),
  always("status", "verified", "`verified`, `failed` or `degraded`."),
  always("records_verified", 4, "The number of DNS records that were found."),
  always("records_total", 4, "The number of DNS records that the domain needs."),
  maybe("verified_at", "string", "The time of the verification. Null on failure.", EXAMPLE_TIME),
]

const degraded: Shown[] = [
  ...domain,
  always("missing", ["dkim"], "The DNS records that are missing."),
]

const counts = { email: { sent: 120, skipped: 3 } }

const topic: Shown[] = [
  always("publish_id", `${EXAMPLE_ID}12`, "The id of the publication."),
  always("topic_key", "releases", "The key of the topic."),
  always("audience", 123, "The number of subscribers in the audience."),
  always("counts", counts, "The results by channel."),
  timestamp,
]

const workflow: Shown[] = [
  always("execution_id", `${EXAMPLE_ID}13`, "The id of the execution."),
  always("workflow_id", `${EXAMPLE_ID}14`, "The id of the workflow."),
  always("workflow_key", "welcome", "The key of the workflow."),
  maybe("subscriber_id", "string", "The subscriber that it ran for.", `${EXAMPLE_ID}05`),
  maybe("transaction_id", "string", "The transaction id of the trigger.", "tx-1042"),
  always("status", "completed", "The result of the execution."),
  maybe("error", "object", "The reason of the failure."),
  timestamp,
]

const broadcast: Shown[] = [
  always("broadcast_id", `${EXAMPLE_ID}15`, "The id of the broadcast."),
  always("name", "November news", "The name of the broadcast."),
  always("status", "completed", "`completed` or `paused`."),
  maybe("reason", "string", "The reason of the pause: canary, reputation or a person."),
  always("counts", { sent: 4980, failed: 20 }, "The results."),
  timestamp,
]

const disabled: Shown[] = [
  always("webhook_id", `${EXAMPLE_ID}16`, "The endpoint that was disabled."),
  always("url", "https://example.com/hooks", "The URL of the endpoint."),
  always("reason", "circuit_breaker", "`circuit_breaker`, `gone`, `manual` or `paused`."),
  always("consecutive_failures", 10, "The number of failed attempts in a row."),
  timestamp,
]

const test: Shown[] = [
  always("message", "A test of your endpoint.", "A text for people."),
  always("webhook_id", `${EXAMPLE_ID}16`, "The endpoint that is tested."),
  timestamp,
]

const account: Shown[] = [
  always("account_id", `${EXAMPLE_ID}17`, "The id of the account."),
  always("from", "active", "The old status: `active`, `throttled` or `frozen`."),
  always("to", "throttled", "The new status."),
  maybe("reason", "string", "The reason of the change.", "bounce_rate=6.1%;threshold=5%;window=7d"),
  maybe("bounce_rate", "number", "Share of bounces, 0 to 1.", 0.061),
  maybe("complaint_rate", "number", "Share of complaints, 0 to 1.", 0.0004),
  timestamp,
]

export const sendingFields: Record<string, Shown[]> = {
  domain,
  "domain.degraded": degraded,
  topic,
  workflow,
  broadcast,
  "webhook.disabled": disabled,
  "webhook.test": test,
  account,
}

export const sendingExamples: Record<string, Record<string, unknown>> = {
  "domain.verification_failed": { status: "failed", records_verified: 2, verified_at: null },
  "domain.degraded": { status: "degraded", records_verified: 3 },
  "workflow.execution_failed": {
    status: "failed",
    error: { code: "template_render_failed", message: "A variable is missing." },
  },
  "broadcast.paused": { status: "paused", reason: "canary" },
}
