interface Code {
  readonly status: number
  /** Other statuses the contract gives the code on some routes; see `ApiError`'s last argument. */
  readonly elsewhere?: readonly number[]
}

/** Every code the API can answer with, and its HTTP status. */
export const codes = {
  unauthorized: { status: 401 },
  forbidden: { status: 403 },
  ip_not_allowed: { status: 403 },
  account_locked: { status: 403 },
  account_suspended: { status: 403 },
  account_frozen: { status: 403 },
  account_throttled: { status: 429 },
  validation_error: { status: 422 },
  invalid_email: { status: 422, elsewhere: [400] },
  invalid_phone_number: { status: 422 },
  invalid_phone: { status: 400 },
  invalid_template: { status: 422 },
  invalid_url: { status: 422 },
  invalid_json: { status: 400 },
  missing_required_field: { status: 422 },
  rate_limit_exceeded: { status: 429 },
  rate_limited: { status: 429 },
  otp_send_rate_limit_exceeded: { status: 429 },
  otp_verify_rate_limit_exceeded: { status: 429 },
  login_rate_limit_exceeded: { status: 429 },
  not_found: { status: 404 },
  template_not_found: { status: 404 },
  subscriber_not_found: { status: 404 },
  device_not_found: { status: 404 },
  webhook_not_found: { status: 404 },
  topic_not_found: { status: 404 },
  user_not_found: { status: 404 },
  conflict: { status: 409 },
  duplicate_subscriber: { status: 409 },
  duplicate_device: { status: 409 },
  already_verified: { status: 409 },
  sms_not_configured: { status: 400, elsewhere: [503] },
  push_not_configured: { status: 400 },
  domain_not_verified: { status: 400 },
  sender_not_configured: { status: 400 },
  email_not_configured: { status: 503 },
  suppressed_recipient: { status: 422 },
  mfa_required: { status: 403 },
  invalid_otp: { status: 422 },
  otp_invalid: { status: 400 },
  otp_expired: { status: 422, elsewhere: [400] },
  otp_max_attempts: { status: 400 },
  invalid_recovery_code: { status: 422 },
  invalid_totp: { status: 401 },
  invalid_backup_code: { status: 401 },
  invalid_mfa: { status: 401 },
  invalid_verification: { status: 401 },
  invalid_code: { status: 400 },
  mfa_not_enabled: { status: 400 },
  mfa_already_enabled: { status: 409 },
  no_pending_enrollment: { status: 400 },
  email_required: { status: 400 },
  weak_password: { status: 422 },
  password_recently_used: { status: 422 },
  invalid_current_password: { status: 422 },
  email_not_found: { status: 400 },
  phone_not_found: { status: 400 },
  email_already_registered: { status: 400 },
  phone_already_registered: { status: 400 },
  user_inactive: { status: 400 },
  sms_send_failed: { status: 400 },
  payment_required: { status: 402 },
  plan_limit_exceeded: { status: 403 },
  plan_upgrade_required: { status: 403, elsewhere: [402] },
  payload_too_large: { status: 413 },
  send_failed: { status: 500 },
  provider_error: { status: 502 },
  template_render_failed: { status: 422 },
  internal_error: { status: 500 },
  service_unavailable: { status: 503 },
  timeout: { status: 504 },
  invalid_assertion: { status: 401 },
  invalid_auth_code: { status: 401 },
  provider_not_configured: { status: 401 },
  environment_required: { status: 400 },
  feature_not_enabled: { status: 403 },
  ai_quota_exceeded: { status: 402 },
  ai_budget_exceeded: { status: 402 },
  ai_rate_limited: { status: 429 },
  bedrock_throttled: { status: 503 },
  ai_workflow_invalid: { status: 502 },
  ai_advisory_invalid: { status: 502 },
} as const satisfies Record<string, Code>

export type ErrorCode = keyof typeof codes

/** What only some errors carry: headers for the answer, or the status of the code elsewhere. */
export interface ErrorExtras {
  headers?: Record<string, string> | undefined
  status?: number | undefined
}

/** The caller's mistake. Thrown anywhere, turned into an answer in `http/envelope.ts` only. */
export class ApiError extends Error {
  override readonly name = "ApiError"
  readonly code: ErrorCode
  readonly status: number
  readonly details: object
  readonly headers?: Record<string, string>

  constructor(code: ErrorCode, message: string, details: object = {}, extras: ErrorExtras = {}) {
    super(message)
    this.code = code
    this.status = extras.status ?? codes[code].status
    this.details = details
    if (extras.headers) this.headers = extras.headers
  }
}

/** Whether a text that came from elsewhere (a worker, a stored row) is one of our codes. */
export const isErrorCode = (text: unknown): text is ErrorCode =>
  typeof text === "string" && Object.hasOwn(codes, text)

/** Reads as the end of a sentence: `return found ?? fail("not_found", "No such thing.")`. */
export function fail(code: ErrorCode, message: string, details?: object): never {
  throw new ApiError(code, message, details)
}
