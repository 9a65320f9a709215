import { always, EXAMPLE_ID, EXAMPLE_TIME, maybe, type Shown, timestamp } from "./field"

const domain: Shown[] = [
  always("id", `${EXAMPLE_ID}11`, "The domain's id."),
  always("domain", "example.com", "Its name."),
  always("status", "verified", "verified, failed or degraded."),
  always("records_verified", 4, "How many of its records were found."),
  always("records_total", 4, "How many it needs."),
  maybe("verified_at", "string", "Since when; null on failure.", EXAMPLE_TIME),
]

const degraded: Shown[] = [...domain, always("missing", ["dkim"], "The records that are gone.")]

const counts = { email: { sent: 120, skipped: 3 } }

const topic: Shown[] = [
  always("publish_id", `${EXAMPLE_ID}12`, "The publication."),
  always("topic_key", "releases", "The topic."),
  always("audience", 123, "How many subscribers it was for."),
  always("counts", counts, "What became of it, by channel."),
  timestamp,
]

const workflow: Shown[] = [
  always("execution_id", `${EXAMPLE_ID}13`, "The execution."),
  always("workflow_id", `${EXAMPLE_ID}14`, "The workflow."),
  always("workflow_key", "welcome", "Its key."),
  maybe("subscriber_id", "string", "The subscriber that it ran for.", `${EXAMPLE_ID}05`),
  maybe("transaction_id", "string", "As the trigger was called.", "tx-1042"),
  always("status", "completed", "How it ended."),
  maybe("error", "object", "Why it failed."),
  timestamp,
]

const broadcast: Shown[] = [
  always("broadcast_id", `${EXAMPLE_ID}15`, "The broadcast."),
  always("name", "November news", "What it is called."),
  always("status", "completed", "completed or paused."),
  maybe("reason", "string", "Why it was paused: canary, reputation or by hand."),
  always("counts", { sent: 4980, failed: 20 }, "What became of it."),
  timestamp,
]

const disabled: Shown[] = [
  always("webhook_id", `${EXAMPLE_ID}16`, "The endpoint that was disabled."),
  always("url", "https://example.com/hooks", "Where it points to."),
  always("reason", "circuit_breaker", "circuit_breaker, gone, manual or paused."),
  always("consecutive_failures", 10, "Failed attempts in a row."),
  timestamp,
]

const test: Shown[] = [
  always("message", "A test of your endpoint.", "For people."),
  always("webhook_id", `${EXAMPLE_ID}16`, "The endpoint that is tested."),
  timestamp,
]

const account: Shown[] = [
  always("account_id", `${EXAMPLE_ID}17`, "The account."),
  always("from", "active", "The status before: active, throttled or frozen."),
  always("to", "throttled", "The status now."),
  maybe("reason", "string", "Why.", "bounce_rate=6.1%;threshold=5%;window=7d"),
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
