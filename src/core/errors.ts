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
interface ErrorExtras {
  headers?: Record<string, string> | undefined
  status?: number | undefined
}

/**
 * The caller's mistake. Thrown anywhere, turned into an answer in `http/envelope.ts` only.
 * `details.retry_after`, in seconds, is also the header Retry-After (RFC 9110, 10.2.3).
 */
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
    const retry_after = "retry_after" in details ? String(details.retry_after) : undefined
    const headers = { ...extras.headers, ...(retry_after && { "retry-after": retry_after }) }
    if (Object.keys(headers).length > 0) this.headers = headers
  }
}

/** Whether a text that came from elsewhere (a worker, a stored row) is one of our codes. */
export const isErrorCode = (text: unknown): text is ErrorCode =>
  typeof text === "string" && Object.hasOwn(codes, text)

/** Reads as the end of a sentence: `return found ?? fail("not_found", "No such thing.")`. */
export function fail(code: ErrorCode, message: string, details?: object): never {
  throw new ApiError(code, message, details)
}

/** Throws 409 `conflict`, reason `too_many`: there are as many of something as there may be. */
export const tooMany = (message: string, limit: number): never =>
  fail("conflict", message, { reason: "too_many", limit })

/** The meaning of each code, for the pages that `meta.docs` of an error names. */
export const meanings: Readonly<Record<ErrorCode, string>> = {
  unauthorized: "The credential is missing, wrong, expired or revoked.",
  forbidden: "The credential is valid, but it may not do this. A scope or a role is missing.",
  ip_not_allowed: "The key has a list of allowed addresses, and your address is not on it.",
  account_locked: "The account is locked. Its operator can unlock it.",
  account_suspended: "The account is suspended because of a violation of the rules.",
  account_frozen: "The account cannot send. Too many of its messages bounced or got complaints.",
  account_throttled: "The account sends at a reduced rate, and this message was refused.",
  validation_error: "A field of the body, the query or a header is not valid.",
  invalid_email: "An email address is not valid.",
  invalid_phone_number: "A phone number is not valid. Write it as +4915112345678.",
  invalid_phone: "A phone number is not valid. Write it as +4915112345678.",
  invalid_template: "The template has a mistake, or it is too large.",
  invalid_url: "A URL is not valid, it is not allowed, or nothing can be fetched from it.",
  invalid_json: "The body is not JSON, it breaks a limit, or its content type is another one.",
  missing_required_field: "A required field or header is missing.",
  rate_limit_exceeded: "There were too many requests in a short time.",
  rate_limited: "The project sent too many emails in one second.",
  otp_send_rate_limit_exceeded: "Too many codes or links were requested.",
  otp_verify_rate_limit_exceeded: "Too many codes were tried.",
  login_rate_limit_exceeded: "Too many sign-ins, registrations or resets were tried.",
  not_found: "The path or the record does not exist, or the record belongs to another project.",
  template_not_found: "The project has no such template.",
  subscriber_not_found: "The project has no such subscriber.",
  device_not_found: "The device does not exist, or the recipient has no device.",
  webhook_not_found: "The project has no such webhook.",
  topic_not_found: "The project has no such topic.",
  user_not_found: "There is no such user.",
  conflict: "The current state does not allow this, or the same request is still running.",
  duplicate_subscriber: "A subscriber with this external id exists already.",
  duplicate_device: "This device is registered already.",
  already_verified: "This is verified already.",
  sms_not_configured: "No provider for SMS is set up.",
  push_not_configured: "No provider for push messages is set up.",
  domain_not_verified: "The domain of the sender is not verified.",
  sender_not_configured: "The message has no sender, and the project has no default sender.",
  email_not_configured: "No provider for email is set up.",
  suppressed_recipient: "The recipient is on the suppression list.",
  mfa_required: "The account requires a second factor. Sign in with it.",
  invalid_otp: "The code is wrong.",
  otp_invalid: "The code is wrong.",
  otp_expired: "The code is expired. Request a new one.",
  otp_max_attempts: "The code was tried too often. Request a new one.",
  invalid_recovery_code: "The recovery code is wrong, or it was used.",
  invalid_totp: "The code of the authenticator app is wrong.",
  invalid_backup_code: "The backup code is wrong, or it was used.",
  invalid_mfa: "The second factor is wrong.",
  invalid_verification: "The password or the code is wrong.",
  invalid_code: "The code is wrong or expired.",
  mfa_not_enabled: "The user has no second factor.",
  mfa_already_enabled: "The user has a second factor already.",
  no_pending_enrollment: "No enrolment of a second factor was begun.",
  email_required: "An email address is needed.",
  weak_password: "The password is too weak. The error says what is missing.",
  password_recently_used: "The password was used before. Choose another one.",
  invalid_current_password: "The present password is wrong.",
  email_not_found: "No user has this email address.",
  phone_not_found: "No user has this phone number.",
  email_already_registered: "A user with this email address exists already.",
  phone_already_registered: "A user with this phone number exists already.",
  user_inactive: "The user is not active.",
  sms_send_failed: "The SMS could not be sent.",
  payment_required: "The quota of the month is used up.",
  plan_limit_exceeded: "The plan allows no more records of this kind, or no more stored megabytes.",
  plan_upgrade_required: "The plan does not include this feature.",
  payload_too_large: "The body or the message is too large.",
  send_failed: "The message could not be sent.",
  provider_error: "The provider refused the request, or its answer makes no sense.",
  template_render_failed: "The template could not be filled with these variables.",
  internal_error: "The server failed. Give the request id to the operator.",
  service_unavailable: "The server cannot do this at the moment. Nothing was accepted.",
  timeout: "The request took too long.",
  invalid_assertion: "The proof of the sign-in is not valid.",
  invalid_auth_code: "The authorization code is not valid.",
  provider_not_configured: "This provider is not set up.",
  environment_required: "The request does not say which environment it means.",
  feature_not_enabled: "This feature is not enabled.",
  ai_quota_exceeded: "The quota for AI is used up.",
  ai_budget_exceeded: "The budget for AI is used up.",
  ai_rate_limited: "There were too many AI requests in an hour.",
  bedrock_throttled: "The AI provider refuses more requests at the moment.",
  ai_workflow_invalid: "The AI model wrote a workflow that is not valid.",
  ai_advisory_invalid: "The AI model gave advice that is not valid.",
}

export interface Problem {
  /** Dot form: `to.email`, `messages.3.subject`. */
  path: string
  code: string
  message: string
}

/** A problem that, when it is the only one, answers with a code of its own. */
const OWN_CODES: Record<string, ErrorCode> = {
  required: "missing_required_field",
  invalid_email: "invalid_email",
  invalid_phone_number: "invalid_phone_number",
  invalid_url: "invalid_url",
  invalid_template: "invalid_template",
}

const MOST_PROBLEMS = 50
/** Names of fields may be the caller's own, as long as the body: an answer says each one thrice. */
const LONGEST_PATH = 200

/** Collects everything that is wrong with a request, so that one answer names it all. */
export class Problems {
  readonly list: Problem[] = []
  readonly #prefix: string

  constructor(prefix = "") {
    this.#prefix = prefix
  }

  /** The first complaint about a path is the useful one. Returns undefined, for a reader to return. */
  add(path: string, code: string, message: string): undefined {
    const whole = (this.#prefix + path).slice(0, LONGEST_PATH).toWellFormed()
    const is_known = this.list.some((one) => one.path === whole)
    if (this.list.length < MOST_PROBLEMS && !is_known)
      this.list.push({ path: whole, code, message })
  }

  get any(): boolean {
    return this.list.length > 0
  }

  throwIfAny() {
    if (this.any) throw problemError(this.list)
  }
}

/** One problem with its own code answers with that; everything else is a `validation_error`. */
export function problemError(list: Problem[]): ApiError {
  const [only] = list
  const own = list.length === 1 && only ? OWN_CODES[only.code] : undefined
  if (only && own) {
    return new ApiError(own, `${only.path}: ${only.message}`, {
      field: only.path,
      reason: only.message,
    })
  }
  const told = list.map(({ path, message }) => `${path}: ${message}`).slice(0, 3)
  return new ApiError("validation_error", told.join(" "), { fields: list })
}

/** One problem. `more` goes into the details of the error. */
export const invalid = (path: string, code: string, message: string, more?: object): ApiError => {
  const error = problemError([{ path, code, message }])
  Object.assign(error.details, more)
  return error
}
