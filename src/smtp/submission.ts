import { ApiError, type ErrorCode, fail } from "../core/errors"
import { newRequestId } from "../core/ids"
import { millis } from "../core/time"
import { asApiError } from "../http/envelope"
import { type CredentialVerifiers, Guard } from "../http/guard"
import type { RateLimits } from "../http/rate-limits"
import { refuse } from "../identity/authenticate"
import type { Caller } from "../identity/caller"
import { notOneAddress, sendableForm } from "../lib/address"
import { subscriberOf } from "../lib/ip-ranges"
import { allowanceOf, refuseFrozen, storedShareOf } from "../messages/accept"
import { refuseAllSuppressed } from "../messages/suppressed"
import { featuresOf } from "../plans/plans"
import { requireRoomFor } from "../tenancy/quotas"
import { fullRefusal } from "../tenancy/stored-share"
import {
  type MailServerOptions,
  type MailSession,
  refusalText,
  SmtpReplyError,
  smtpRefusal,
} from "./mail-session"
import { type SubmitParts, submit } from "./submit"

interface SubmissionParts extends SubmitParts, CredentialVerifiers {
  limits: RateLimits
}

type SubmissionHandlers = Required<
  Pick<
    MailServerOptions<SubmissionIdentity>,
    "authenticate" | "onSender" | "onRecipient" | "onMail"
  >
>

type SubmissionSession = MailSession<SubmissionIdentity>

/** What the submission server asks, at each phase of a dialogue (contract 22, section 1). */
export function submissionHandlers(parts: SubmissionParts): SubmissionHandlers {
  const guard = new Guard(parts.store, parts.limits, parts)
  const login = new SubmissionLogin(guard)
  return {
    authenticate: (credentials, session) => login.login(credentials, session),
    async onSender(_, session) {
      const identity = identityOf(session)
      identity.recipients = 0
      identity.caller = await identity.renew().catch((error) => {
        throw ending(replyToLogin(error))
      })
      await replied(async () => guard.countRequest(identity.caller))
    },
    onRecipient: (address, session) =>
      replied(() => admitRecipient(parts, address, identityOf(session))),
    async onMail(mail, session) {
      const to = mail.to.map((address) => sendableForm(address) ?? address)
      const ids = await replied(() => submit(parts, { ...mail, to }, identityOf(session).caller))
      return `2.0.0 Ok: queued as ${ids.join(" ")}`
    },
  }
}

/** A key that was let in and works no more ends its session. */
const ending = ({ code, enhanced, message }: SmtpReplyError) =>
  new SmtpReplyError(code, enhanced, message, { close: true })

/** Runs, and makes of what is thrown the reply to the command. */
async function replied<Result>(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    throw replyTo(error)
  }
}

function identityOf({ identity }: SubmissionSession): SubmissionIdentity {
  if (identity) return identity
  throw smtpRefusal(530, "5.7.0", "unauthorized", "Authentication is required.")
}

/** The quota, and what the project may store, are asked here already: what fits is sent, and the client keeps the rest. */
async function admitRecipient(
  { store }: SubmissionParts,
  address: string,
  identity: SubmissionIdentity,
) {
  const { caller } = identity
  if (sendableForm(address) === undefined) {
    throw smtpRefusal(501, "5.1.3", "validation_error", notOneAddress(address))
  }
  await refuseFrozen(store.read, caller, "email", identity.recipients + 1)
  // What is sent from the sandbox is no use of the service, and counts nothing.
  if (!caller.project_settings.sandbox) {
    await requireRoomFor(store.read, allowanceOf(caller, "email"), identity.recipients + 1)
  }
  const full = await fullRefusal(store.read, storedShareOf(caller, caller.project_id))
  if (full) throw full
  // The category and the subscriber stand in the header of the mail, so only what holds for the whole
  // project counts here, even where the subscriber is blocked.
  const { project_id } = caller
  const of = { project_id, channel: "email" } as const
  await refuseAllSuppressed(store.read, of, [{ email: address }], {})
  identity.recipients += 1
}

/** The party behind a session of the submission server. */
export interface SubmissionIdentity {
  caller: Caller
  /** Asks again whether the key still works: a session may last for hours. Rejects as the login does. */
  renew: () => Promise<Caller>
  /** Of the message that is being submitted. */
  recipients: number
}

/** Contract 22, section 1. */
const MOST_OF_CONNECTION = 3
const MOST_OF_ADDRESS = 10
const QUARTER_HOUR_MS = 900_000

/**
 * Lets API keys in by AUTH, whatever the user name. After three failures of a connection, and for
 * fifteen minutes after ten failures of an address, the answer is 421.
 */
class SubmissionLogin {
  readonly #guard: Pick<Guard, "admitKey">
  readonly #failures = new WeakMap<MailSession, number>()
  readonly #bans = new AddressBans()

  constructor(guard: Pick<Guard, "admitKey">) {
    this.#guard = guard
  }

  /** Rejects with SmtpReplyError. A banned address costs no look at the credential. */
  async login(
    { username, password }: { username: string; password: string },
    session: MailSession<SubmissionIdentity>,
  ): Promise<SubmissionIdentity> {
    const { address } = session
    if (this.#bans.isBanned(address)) throw tooMany()
    const renew = () => this.#admit(password, address)
    try {
      if (username === "") refuse()
      return { caller: await renew(), renew, recipients: 0 }
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) this.#note(error, session)
      throw replyToLogin(error)
    }
  }

  async #admit(key: string, address: string): Promise<Caller> {
    const caller = await this.#guard.admitKey(key, address, "email:send")
    if (!featuresOf(caller.plan).smtp_submission) refusePlan(caller)
    return caller
  }

  /** A key that is right but may not send is nobody's guess, so its address is not banned. */
  #note({ code }: ApiError, session: MailSession) {
    const failures = (this.#failures.get(session) ?? 0) + 1
    this.#failures.set(session, failures)
    if (code === "unauthorized" || code === "ip_not_allowed") this.#bans.count(session.address)
    if (failures >= MOST_OF_CONNECTION) throw tooMany()
  }
}

function refusePlan({ plan }: Caller) {
  const message = `The plan ${plan} does not include SMTP submission. Send by the HTTP API, or use a larger plan.`
  fail("plan_limit_exceeded", message, { resource: "smtp_submission", used: 0, limit: 0, plan })
}

const tooMany = () => smtpRefusal(421, "4.7.0", "login_rate_limit_exceeded", TOO_MANY)

const TOO_MANY = "Too many failed logins. Check the API key, and try again in 15 minutes."

interface FailedLogins {
  failures: number
  /** When the count began, and until when the address is refused; epoch milliseconds. */
  since: number
  until: number
}

/** The addresses with the latest failures; a flood of others makes the oldest ones forgotten. */
const MOST_ADDRESSES = 50_000

/** Counts failed logins by address, in the memory of this process. */
export class AddressBans {
  readonly #known = new Map<string, FailedLogins>()

  isBanned(address: string): boolean {
    const known = this.#known.get(subscriberOf(address))
    return known !== undefined && known.until > millis()
  }

  count(address: string): void {
    const name = subscriberOf(address)
    const now = millis()
    const known = this.#known.get(name)
    const is_current = known && now - known.since < QUARTER_HOUR_MS && now >= known.since
    const next = is_current ? known : { failures: 0, since: now, until: 0 }
    next.failures += 1
    if (next.failures >= MOST_OF_ADDRESS) next.until = now + QUARTER_HOUR_MS
    this.#known.delete(name)
    this.#known.set(name, next)
    const oldest = this.#known.keys().next().value
    if (this.#known.size > MOST_ADDRESSES && oldest !== undefined) this.#known.delete(oldest)
  }

  /** Addresses that are remembered. */
  get size(): number {
    return this.#known.size
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
function replyTo(thrown: unknown): SmtpReplyError {
  if (thrown instanceof SmtpReplyError) return thrown
  const id = newRequestId()
  const error = asApiError(thrown, id, "POST")
  const api_code = SAID_AS[error.code] ?? error.code
  const [code, enhanced] = REPLIES[error.code] ?? REPLIES[api_code] ?? otherReply(error)
  return new SmtpReplyError(code, enhanced, refusalText(api_code, error.message, id))
}

/** As `replyTo`, for what is refused at the login: there a missing scope, or plan, is a matter of the login. */
function replyToLogin(thrown: unknown): SmtpReplyError {
  if (!(thrown instanceof ApiError)) return replyTo(thrown)
  const { code, message } = thrown
  if (code === "forbidden" || code === "plan_limit_exceeded")
    return smtpRefusal(535, "5.7.1", code, message)
  if (code !== "rate_limit_exceeded") return replyTo(thrown)
  return smtpRefusal(421, "4.7.0", "login_rate_limit_exceeded", message)
}

const otherReply = ({ status }: ApiError): Reply =>
  status >= 500 || status === 429 ? OTHER_TEMPORARY : OTHER_FINAL
