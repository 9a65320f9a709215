/**
 * Every code the API can answer with: its HTTP status, its meaning for the page that `meta.docs` names,
 * and the statuses that the contract gives it on some routes (`ApiError`'s last argument).
 */
export const codes = {
  unauthorized: [401, "The credential is missing, wrong, expired or revoked."],
  forbidden: [
    403,
    "The credential is valid, but it may not do this. A scope or a role is missing.",
  ],
  ip_not_allowed: [403, "The key has a list of allowed addresses, and your address is not on it."],
  account_locked: [403, "The account is locked. Its operator can unlock it."],
  account_suspended: [403, "The account is suspended because of a violation of the rules."],
  account_frozen: [
    403,
    "The account cannot send. Too many of its messages bounced or got complaints.",
  ],
  account_throttled: [429, "The account sends at a reduced rate, and this message was refused."],
  validation_error: [422, "A field of the body, the query or a header is not valid."],
  invalid_email: [422, "An email address is not valid.", 400],
  invalid_phone_number: [422, "A phone number is not valid. Write it as +4915112345678."],
  invalid_phone: [400, "A phone number is not valid. Write it as +4915112345678."],
  invalid_template: [422, "The template has a mistake, or it is too large."],
  invalid_url: [422, "A URL is not valid, it is not allowed, or nothing can be fetched from it."],
  invalid_json: [
    400,
    "The body is not JSON, it breaks a limit, or its content type is another one.",
  ],
  missing_required_field: [422, "A required field or header is missing."],
  rate_limit_exceeded: [429, "There were too many requests in a short time."],
  rate_limited: [429, "The project sent too many emails in one second."],
  otp_send_rate_limit_exceeded: [429, "Too many codes or links were requested."],
  otp_verify_rate_limit_exceeded: [429, "Too many codes were tried."],
  login_rate_limit_exceeded: [429, "Too many sign-ins, registrations or resets were tried."],
  not_found: [
    404,
    "The path or the record does not exist, or the record belongs to another project.",
  ],
  template_not_found: [404, "The project has no such template."],
  subscriber_not_found: [404, "The project has no such subscriber."],
  device_not_found: [404, "The device does not exist, or the recipient has no device."],
  webhook_not_found: [404, "The project has no such webhook."],
  topic_not_found: [404, "The project has no such topic."],
  user_not_found: [404, "There is no such user."],
  conflict: [409, "The current state does not allow this, or the same request is still running."],
  duplicate_subscriber: [409, "A subscriber with this external id exists already."],
  duplicate_device: [409, "This device is registered already."],
  already_verified: [409, "This is verified already."],
  sms_not_configured: [400, "No provider for SMS is set up.", 503],
  push_not_configured: [400, "No provider for push messages is set up."],
  domain_not_verified: [400, "The domain of the sender is not verified."],
  sender_not_configured: [400, "The message has no sender, and the project has no default sender."],
  email_not_configured: [503, "No provider for email is set up."],
  suppressed_recipient: [422, "The recipient is on the suppression list."],
  mfa_required: [403, "The account requires a second factor. Sign in with it."],
  invalid_otp: [422, "The code is wrong."],
  otp_invalid: [400, "The code is wrong."],
  otp_expired: [422, "The code is expired. Request a new one.", 400],
  otp_max_attempts: [400, "The code was tried too often. Request a new one."],
  invalid_recovery_code: [422, "The recovery code is wrong, or it was used."],
  invalid_totp: [401, "The code of the authenticator app is wrong."],
  invalid_backup_code: [401, "The backup code is wrong, or it was used."],
  invalid_mfa: [401, "The second factor is wrong."],
  invalid_verification: [401, "The password or the code is wrong."],
  invalid_code: [400, "The code is wrong or expired."],
  mfa_not_enabled: [400, "The user has no second factor."],
  mfa_already_enabled: [409, "The user has a second factor already."],
  no_pending_enrollment: [400, "No enrolment of a second factor was begun."],
  email_required: [400, "An email address is needed."],
  weak_password: [422, "The password is too weak. The error says what is missing."],
  password_recently_used: [422, "The password was used before. Choose another one."],
  invalid_current_password: [422, "The present password is wrong."],
  email_not_found: [400, "No user has this email address."],
  phone_not_found: [400, "No user has this phone number."],
  email_already_registered: [400, "A user with this email address exists already."],
  phone_already_registered: [400, "A user with this phone number exists already."],
  user_inactive: [400, "The user is not active."],
  sms_send_failed: [400, "The SMS could not be sent."],
  payment_required: [402, "The quota of the month is used up."],
  plan_limit_exceeded: [
    403,
    "The plan allows no more records of this kind, or no more stored megabytes.",
  ],
  plan_upgrade_required: [403, "The plan does not include this feature.", 402],
  payload_too_large: [413, "The body or the message is too large."],
  send_failed: [500, "The message could not be sent."],
  provider_error: [502, "The provider refused the request, or its answer makes no sense."],
  template_render_failed: [422, "The template could not be filled with these variables."],
  internal_error: [500, "The server failed. Give the request id to the operator."],
  service_unavailable: [503, "The server cannot do this at the moment. Nothing was accepted."],
  timeout: [504, "The request took too long."],
  invalid_assertion: [401, "The proof of the sign-in is not valid."],
  invalid_auth_code: [401, "The authorization code is not valid."],
  provider_not_configured: [401, "This provider is not set up."],
  environment_required: [400, "The request does not say which environment it means."],
  feature_not_enabled: [403, "This feature is not enabled."],
  ai_quota_exceeded: [402, "The quota for AI is used up."],
  ai_budget_exceeded: [402, "The budget for AI is used up."],
  ai_rate_limited: [429, "There were too many AI requests in an hour."],
  bedrock_throttled: [503, "The AI gateway refuses more requests at the moment."],
  ai_workflow_invalid: [502, "The AI model wrote a workflow that is not valid."],
  ai_advisory_invalid: [502, "The AI model gave advice that is not valid."],
} as const satisfies Record<string, readonly [number, string, ...number[]]>

export type ErrorCode = keyof typeof codes

/** Where the route says nothing else. */
export const statusOf = (code: ErrorCode): number => codes[code][0]

/** The meaning of a code in one sentence. */
export const meaningOf = (code: ErrorCode): string => codes[code][1]

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
    this.status = extras.status ?? statusOf(code)
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

/** Throws 409 `conflict` with a reason for programs, and the id of what stands in the way. */
export const conflict = (reason: string, id: string | null, message: string): never =>
  fail("conflict", message, { reason, id })

/** Throws 409 `conflict`, reason `too_many`: there are as many of something as there may be. */
export const tooMany = (message: string, limit: number): never =>
  fail("conflict", message, { reason: "too_many", limit })

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
