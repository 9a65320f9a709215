import file from "../../../docs/errors.md" with { type: "file" }
import { codes, type ErrorCode, isErrorCode, meaningOf, statusOf } from "../../core/errors"
import { pageOf } from "../../http/envelope"
import { EXAMPLE_ID, EXAMPLE_TIME } from "../../lib/record-fields"
import { html, type Markup } from "../html"
import { codeBlock } from "./frame"
import { renderMarkdown, sectionsOf } from "./markdown"
import { type ApiReference, codesOf, failuresOf } from "./reference"

/** The text of `docs/errors.md`: the causes of each code, and what to do. */
export const errorText = (): Promise<string> => Bun.file(file).text()

/** The page of an error's code, which `meta.docs` of the error names. Undefined for other names. */
export function errorContent(
  code: string,
  text: string,
  reference: ApiReference,
): Markup | undefined {
  if (!isErrorCode(code)) return undefined
  const told = sectionsOf(text).sections.find(({ heading }) => heading === code)
  const [causes = "", remedy = ""] = (told?.text ?? "").split(/\*\*What to do:\*\*/)
  const status = statusesOf(code)
  return html`<p class="trail"><a href="/docs">Reference</a> / <a href="/docs/errors">Errors</a></p>
<h1><code>${code}</code></h1>
<p>${meaningOf(code)}</p>
<dl class="facts">
<dt>Status</dt>
<dd>${status.join(" or ")}</dd>
<dt>Try again?</dt>
<dd>${status.every(isWorthARetry) ? RETRY : FINAL}</dd>
</dl>
<h2 id="causes">Causes</h2>
${renderMarkdown(causes)}
<h2 id="remedy">What to do</h2>
${renderMarkdown(remedy)}
<h2 id="example">Response</h2>
${codeBlock(JSON.stringify(exampleOf(code), null, 2), "Response")}
${operationsPart(code, reference)}`
}

function statusesOf(code: ErrorCode): number[] {
  const [status, , ...elsewhere]: readonly [number, string, ...number[]] = codes[code]
  return [status, ...elsewhere]
}

const isWorthARetry = (status: number) => status === 429 || status >= 500

const RETRY =
  "Yes, later. Wait for the seconds of the header Retry-After, if there is one. Wait longer each time."
const FINAL = "No. The same request fails again until its cause is mended."

const exampleOf = (code: ErrorCode) => ({
  error: { code, message: "A sentence for people. It may change.", details: exampleDetails(code) },
  meta: { request_id: "req_4f1d2e4c5b6a7d407c3e9b5a3f1d2e4c", docs: pageOf(code) },
})

/** Beyond these, the list would tell nothing. */
const MOST_OPERATIONS = 40

function operationsPart(code: ErrorCode, reference: ApiReference): Markup {
  const all = [...reference.operations.values()].filter((one) =>
    failuresOf(one, reference.description).some((failure) => failure.codes.includes(code)),
  )
  if (all.length === 0) return html`<p>No operation of this version answers with this code.</p>`
  if (all.length > MOST_OPERATIONS) return html`<p>Most operations may answer with this code.</p>`
  return html`<h2 id="operations">Operations with this code</h2>
<ul>${all.map(
    ({ operation }) => html`
<li><a href="/docs/${operation.operationId}">${operation.summary}</a></li>`,
  )}
</ul>`
}

/** Every code of this server, by status. */
export const errorList = (
  reference: ApiReference,
): Markup => html`<p class="trail"><a href="/docs">Reference</a></p>
<h1>Errors</h1>
<p>A failure is <code>{"error": {"code", "message", "details"}, "meta": {"request_id", "docs"}}</code>.
Branch on the status and the code, never on the message. Repeat a request after 429, 500, 502, 503 and 504, with
growing pauses. Every other error is final.</p>
${[...byStatus(reference)].map(
  ([status, list]) => html`
<h2 id="status-${status}">${status}</h2>
<div class="fields pairs" role="table">${list.map(
    (code) => html`
<div role="row"><span role="cell"><a href="/docs/errors/${code}"><code>${code}</code></a></span><span role="cell">${meaningOf(code)}</span></div>`,
  )}
</div>`,
)}`

function byStatus(reference: ApiReference): [number, ErrorCode[]][] {
  const all = [...codesOf(reference)].sort()
  return [...Map.groupBy(all, (code) => statusOf(code))].sort(([a], [b]) => a - b)
}

const tooMany = (scope: string, limit: number, window_seconds: number) => ({
  ...{ retry_after: 1, limit, window_seconds, scope },
})
const field = (name: string, reason: string) => ({ field: name, reason })
const reputation = { reason: "bounces", bounce_rate: 0.07, complaint_rate: 0 }

const DETAILS: Partial<Record<ErrorCode, object>> = {
  validation_error: {
    fields: [
      {
        path: "subject",
        code: "invalid",
        message: "The value must be one line of 1 to 998 characters.",
      },
    ],
  },
  missing_required_field: field("to", "The field is required."),
  invalid_email: field("to", "The value must be one email address."),
  invalid_phone_number: field("to", "The value must be a phone number."),
  invalid_url: field("url", "The URL must begin with https://."),
  invalid_template: field("html", "Line 1, column 12: the block is never closed."),
  rate_limit_exceeded: tooMany("requests", 6000, 60),
  rate_limited: tooMany("sends", 10, 1),
  otp_send_rate_limit_exceeded: tooMany("otp_send", 5, 900),
  otp_verify_rate_limit_exceeded: tooMany("otp_verify", 10, 900),
  login_rate_limit_exceeded: tooMany("sign_in", 10, 900),
  account_throttled: { ...reputation, retry_after: 60 },
  account_frozen: reputation,
  plan_limit_exceeded: { resource: "domains", used: 3, limit: 3, plan: "free" },
  plan_upgrade_required: { feature: "tracking_domain", plan: "free", required_plan: "starter" },
  feature_not_enabled: { feature: "tracking_domain", plan: "free" },
  payment_required: {
    ...{ metric: "email", used: 10_000, limit: 10_000 },
    ...{ reset_at: EXAMPLE_TIME, plan: "free" },
  },
  payload_too_large: { limit_bytes: 1_048_576, received_bytes: 1_400_210 },
  suppressed_recipient: {
    ...{ address: "ann@example.com", reason: "bounce" },
    ...{ scope: { type: "project", key: null }, suppressed_at: EXAMPLE_TIME },
  },
  domain_not_verified: { domain: "example.com", domain_id: EXAMPLE_ID },
  sender_not_configured: { channel: "email" },
  email_not_configured: { channel: "email" },
  sms_not_configured: { channel: "sms" },
  push_not_configured: { channel: "push" },
  provider_not_configured: { provider: "ses" },
  conflict: { reason: "last_owner", id: EXAMPLE_ID },
  duplicate_subscriber: { id: EXAMPLE_ID },
  duplicate_device: { device_id: "device-1" },
  weak_password: { missing: ["digit", "symbol"] },
  template_render_failed: { missing: ["name"] },
}

/** What `details` of an error with this code could be. Most codes have none. */
const exampleDetails = (code: ErrorCode): object => DETAILS[code] ?? {}
