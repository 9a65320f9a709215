import { ApiError, type ErrorCode } from "../core/errors"
import { asApiError } from "../http/envelope"
import { replyId, SmtpReplyError } from "./mail-session"

/** A refusal that has its own reply, whatever its code of the API answers elsewhere. */
export class SubmissionRefusal extends Error {
  readonly code: number
  readonly enhanced: string
  readonly api_code: ErrorCode

  constructor(code: number, enhanced: string, api_code: ErrorCode, message: string) {
    super(message)
    this.code = code
    this.enhanced = enhanced
    this.api_code = api_code
  }
}

type Reply = [code: number, enhanced: string]

/** The replies of contract 22, section 1, by the code of the API. */
const REPLIES: Partial<Record<ErrorCode, Reply>> = {
  unauthorized: [535, "5.7.8"],
  ip_not_allowed: [535, "5.7.8"],
  account_locked: [535, "5.7.1"],
  account_suspended: [535, "5.7.1"],
  login_rate_limit_exceeded: [421, "4.7.0"],
  invalid_email: [501, "5.1.3"],
  domain_not_verified: [550, "5.7.1"],
  forbidden: [550, "5.7.1"],
  account_frozen: [550, "5.7.1"],
  suppressed_recipient: [550, "5.7.1"],
  account_throttled: [451, "4.7.1"],
  rate_limited: [451, "4.7.1"],
  payment_required: [452, "4.2.2"],
  plan_limit_exceeded: [452, "4.2.2"],
  payload_too_large: [552, "5.3.4"],
  validation_error: [554, "5.6.0"],
  service_unavailable: [452, "4.3.1"],
}

const OTHER_FINAL: Reply = [554, "5.6.0"]
const OTHER_TEMPORARY: Reply = [451, "4.3.0"]

/** A code of the API that SMTP says in another word. */
const SAID_AS: Partial<Record<ErrorCode, ErrorCode>> = {
  invalid_email: "validation_error",
  rate_limit_exceeded: "rate_limited",
}

/** What was thrown, as the reply to the command: `<api_code>: <message> (<request_id>)`. */
export function replyTo(thrown: unknown): SmtpReplyError {
  if (thrown instanceof SmtpReplyError) return thrown
  const id = replyId()
  if (thrown instanceof SubmissionRefusal) {
    const { code, enhanced, api_code, message } = thrown
    return new SmtpReplyError(code, enhanced, textOf(api_code, message, id))
  }
  const error = asApiError(thrown, id, "POST")
  const api_code = SAID_AS[error.code] ?? error.code
  const [code, enhanced] = REPLIES[error.code] ?? REPLIES[api_code] ?? otherReply(error)
  return new SmtpReplyError(code, enhanced, textOf(api_code, error.message, id))
}

/** As `replyTo`, for what is refused at the login: there a missing scope, or plan, is a matter of the login. */
export function replyToLogin(thrown: unknown): SmtpReplyError {
  if (!(thrown instanceof ApiError)) return replyTo(thrown)
  const { code, message } = thrown
  if (code === "forbidden" || code === "plan_limit_exceeded")
    return replyTo(new SubmissionRefusal(535, "5.7.1", code, message))
  if (code !== "rate_limit_exceeded") return replyTo(thrown)
  return replyTo(new SubmissionRefusal(421, "4.7.0", "login_rate_limit_exceeded", message))
}

const otherReply = ({ status }: ApiError): Reply =>
  status >= 500 || status === 429 ? OTHER_TEMPORARY : OTHER_FINAL

const MAX_MESSAGE = 400

/** One line of printable ASCII: a message may quote what the client sent. */
function textOf(api_code: string, message: string, id: string): string {
  const plain = message.replace(/\s+/g, " ").replace(/[^ -~]/gu, "?")
  return `${api_code}: ${plain.slice(0, MAX_MESSAGE)} (${id})`
}
