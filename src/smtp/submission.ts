import { Guard, type TokenVerifiers } from "../http/guard"
import type { RateLimits } from "../http/rate-limits"
import type { Caller } from "../identity/caller"
import { isMailbox, notOneAddress } from "../lib/address"
import { allowanceOf, isFrozen, refuseFrozen, storedShareOf } from "../messages/accept"
import { refuseAllSuppressed } from "../messages/suppressed"
import { requireRoomFor } from "../tenancy/quotas"
import { fullRefusal } from "../tenancy/stored-share"
import { type MailServerOptions, type MailSession, SmtpReplyError } from "./mail-session"
import { type SubmissionIdentity, SubmissionLogin } from "./submission-login"
import { replyTo, replyToLogin, SubmissionRefusal } from "./submission-replies"
import { type SubmitParts, submit } from "./submit"

export interface SubmissionParts extends SubmitParts, TokenVerifiers {
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
      await replied(() => guard.countRequest(identity.caller))
    },
    onRecipient: (address, session) =>
      replied(() => admitRecipient(parts, address, identityOf(session))),
    async onMail(mail, session) {
      const ids = await replied(() => submit(parts, mail, identityOf(session).caller))
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
  throw replyTo(new SubmissionRefusal(530, "5.7.0", "unauthorized", "Authentication is required."))
}

/** The quota, and what the project may store, are asked here already: what fits is sent, and the client keeps the rest. */
async function admitRecipient(
  { store, rules }: SubmissionParts,
  address: string,
  identity: SubmissionIdentity,
) {
  const { caller } = identity
  if (!isMailbox(address)) {
    throw new SubmissionRefusal(501, "5.1.3", "validation_error", notOneAddress(address))
  }
  if (isFrozen(caller)) await refuseFrozen(store.read, caller, "email", identity.recipients + 1)
  if (!isSandboxed(caller)) {
    await requireRoomFor(store.read, allowanceOf(caller, "email"), identity.recipients + 1)
  }
  const full = await fullRefusal(store.read, storedShareOf(caller, caller.project_id))
  if (full) throw full
  // The category and the subscriber stand in the header of the mail, so only what holds for the whole
  // project counts here, even where the subscriber is blocked.
  await refuseAllSuppressed(rules.suppressions, caller.project_id, [{ email: address }], {})
  identity.recipients += 1
}

/** What is sent from the sandbox is no use of the service, and counts nothing. */
const isSandboxed = ({ project_settings }: Caller) => project_settings.sandbox
