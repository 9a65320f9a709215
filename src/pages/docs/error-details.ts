import type { ErrorCode } from "../../core/errors"
import { EXAMPLE_ID, EXAMPLE_TIME } from "../../lib/record-fields"

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
export const exampleDetails = (code: ErrorCode): object => DETAILS[code] ?? {}
