import { ApiError, fail } from "../core/errors"
import { millis } from "../core/time"
import type { Guard } from "../http/guard"
import { refuse } from "../identity/authenticate"
import type { Caller } from "../identity/caller"
import { subscriberOf } from "../lib/ip-ranges"
import { featuresOf } from "../plans/plans"
import type { MailSession } from "./mail-session"
import { replyToLogin, SubmissionRefusal } from "./submission-replies"

/** The party behind a session of the submission server. */
export interface SubmissionIdentity {
  caller: Caller
  /** Asks again whether the key still works: a session may last for hours. Rejects as the login does. */
  renew: () => Promise<Caller>
  /** Of the message that is being submitted. */
  recipients: number
}

interface Login {
  username: string
  password: string
}

/** Contract 22, section 1. */
const MOST_OF_CONNECTION = 3
const MOST_OF_ADDRESS = 10
const QUARTER_HOUR_MS = 900_000

const SCOPE = "email:send"

/**
 * Lets API keys in by AUTH, whatever the user name. After three failures of a connection, and for
 * fifteen minutes after ten failures of an address, the answer is 421.
 */
export class SubmissionLogin {
  readonly #guard: Pick<Guard, "admitKey">
  readonly #failures = new WeakMap<MailSession, number>()
  readonly #bans = new AddressBans()

  constructor(guard: Pick<Guard, "admitKey">) {
    this.#guard = guard
  }

  /** Rejects with SmtpReplyError. A banned address costs no look at the credential. */
  async login(
    { username, password }: Login,
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
    const caller = await this.#guard.admitKey(key, address, SCOPE)
    requirePlan(caller)
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

function requirePlan({ plan }: Caller) {
  if (featuresOf(plan).smtp_submission) return
  const message = `The plan ${plan} does not include SMTP submission. Send by the HTTP API, or use a larger plan.`
  fail("plan_limit_exceeded", message, { resource: "smtp_submission", used: 0, limit: 0, plan })
}

const tooMany = () =>
  replyToLogin(new SubmissionRefusal(421, "4.7.0", "login_rate_limit_exceeded", TOO_MANY))

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
