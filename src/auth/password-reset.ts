import { fail } from "../core/errors"
import { keepAnswer } from "../http/idempotency"
import type { Call } from "../http/route"
import { enqueue, type JobHandler, type JobKind } from "../jobs/jobs"
import { openLink, takeLink } from "../sign-in/links"
import type { Reader } from "../store/store"
import type { AuthParts } from "./auth-parts"
import { endSessions } from "./end-sessions"
import { byEmail, type EndUserRow, emailKeyOf, findForUpdate } from "./end-users"
import { type AuthEnvironment, environmentById } from "./environments"
import { forgetStranger } from "./first-proof"
import { countForgot } from "./guesses"
import { expiredLink, linksAmong, prepareLink } from "./mailed-links"
import { requireMethod } from "./methods"
import { prepareNotice } from "./notices"
import { hashNext, setPassword } from "./own-password"
import { requireOwnPassword } from "./proof"
import { requireRedirect } from "./redirects"
import { SUCCESS } from "./schemas"
import type { UserClient } from "./sign-in"
import { userLinks } from "./tables"
import { emitUser } from "./user-events"

const MOST_ATTEMPTS = 10

interface ForgottenPassword {
  environment_id: string
  email: string
  redirect_url: string | null
  ip: string | null
}

/**
 * The work behind "forgot password". It is a job, because the answer must neither say nor show by its time whether
 * the address has a user.
 */
export const userPasswordForgotten: JobKind<ForgottenPassword> = {
  name: "auth.password_forgotten",
  schedule: (attempt) => (attempt < MOST_ATTEMPTS ? 10 * attempt : undefined),
}

/** Throws 503 `email_not_configured`, 422 `invalid_url`, 429 `login_rate_limit_exceeded`, whether the address has a user or not. */
export async function forgetPassword(
  parts: AuthParts,
  environment: AuthEnvironment,
  { email, redirect_url }: { email: string; redirect_url?: string | undefined },
  { ip, claim }: Pick<Call, "ip" | "claim">,
): Promise<typeof SUCCESS> {
  requireMethod(environment, "password")
  if (redirect_url !== undefined) requireRedirect(environment, redirect_url)
  await parts.mail.requireSender(environment)
  await countForgot(parts, environment, { identifier: emailKeyOf(email), ip })
  const { id: environment_id, project_id } = environment
  const payload = { environment_id, email, redirect_url: redirect_url ?? null, ip }
  await parts.store.tx(async (tx) => {
    await enqueue(tx, userPasswordForgotten, { payload, project_id })
    await keepAnswer(tx, claim, SUCCESS)
  })
  return SUCCESS
}

/** Mails a link that works once and for 15 minutes; for an address without an active user it does nothing. */
export const sendPasswordReset = (parts: AuthParts): JobHandler<ForgottenPassword> => ({
  async run({ environment_id, email, redirect_url, ip }) {
    const { read } = parts.store
    const environment = await environmentById(read, environment_id)
    const user = environment && (await byEmail(read, environment, email))
    if (!environment || user?.status !== "active" || !user.email) return {}
    const to = { email: user.email, name: user.name, locale: user.locale }
    const wish = { kind: "password_reset" as const, to, redirect_url }
    const letter = await prepareLink(parts, environment, wish)
    return {
      async done(tx) {
        await letter.accept(tx, user.id)
        const facts = { ip_address: ip }
        await emitUser(tx, environment, user, "user.password_reset_requested", facts)
      },
    }
  },
})

/**
 * Whose password this token may set: that of the mail, or the code that its page handed over. Undefined for an old,
 * used or unknown one, and where the mail was sent to an address that is no more the user's.
 */
export async function ownerOfReset(
  db: Reader,
  environment: AuthEnvironment,
  token: string,
): Promise<EndUserRow | undefined> {
  const link = await openLink(db, userLinks, token, resetsOf(environment))
  const user = link && (await byEmail(db, environment, link.email))
  return user?.id === link?.user_id && user?.status === "active" ? user : undefined
}

const resetsOf = (environment: AuthEnvironment) =>
  linksAmong(environment, "password_reset", "password_reset_code")

/**
 * Sets a new password with a token. All sessions of the user end, also those of an intruder. Throws 422 `otp_expired`,
 * `weak_password`, `password_recently_used`, 403 where the environment takes no passwords.
 */
export async function resetPassword(
  parts: AuthParts,
  environment: AuthEnvironment,
  { token, new_password }: { token: string; new_password: string },
  client: UserClient,
): Promise<void> {
  const { store } = parts
  requireMethod(environment, "password")
  const owner = await ownerOfReset(store.read, environment, token)
  if (!owner) return expiredLink()
  const password_hash = await hashNext(store.read, environment, owner, new_password)
  const notice = await prepareNotice(parts, environment, owner, changed(client))
  await store.tx(async (tx) => {
    if (!(await takeLink(tx, userLinks, token, resetsOf(environment)))) expiredLink()
    const user = await findForUpdate(tx, environment.project_id, owner.id)
    if (user.status !== "active" || user.email_key !== owner.email_key) expiredLink()
    const facts = { ip_address: client.ip, reason: "password_reset" }
    const own = user.email_verified ? user : await forgetStranger(tx, environment, user, facts)
    await setPassword(tx, environment, own, password_hash)
    await emitUser(tx, environment, user, "user.password_changed", facts)
    await endSessions(tx, environment, user, facts)
    await notice.accept(tx)
  })
}

const changed = (client: UserClient) => ({ type: "password_changed" as const, client })

/**
 * With the present password: sets a new one and ends the user's other sessions. Throws 422
 * `invalid_current_password`, `weak_password`, `password_recently_used`.
 */
export async function changePassword(
  parts: AuthParts,
  environment: AuthEnvironment,
  user: EndUserRow,
  wanted: { current_password: string; new_password: string; session_id: string },
  client: UserClient,
): Promise<void> {
  const { store } = parts
  const { current_password, new_password, session_id } = wanted
  requireMethod(environment, "password")
  const settle = await requireOwnPassword(parts, environment, user, current_password)
  const password_hash = await hashNext(store.read, environment, user, new_password)
  const notice = await prepareNotice(parts, environment, user, changed(client))
  await store.tx(async (tx) => {
    const same = await findForUpdate(tx, environment.project_id, user.id)
    if (same.password_hash !== user.password_hash) refuseStale()
    await settle(tx)
    await setPassword(tx, environment, same, password_hash)
    const facts = { ip_address: client.ip, reason: "password_changed" }
    const event = { ...facts, session_id }
    await emitUser(tx, environment, same, "user.password_changed", event)
    await endSessions(tx, environment, same, { ...facts, except: session_id })
    await notice.accept(tx)
  })
}

const refuseStale = () =>
  fail(
    "invalid_current_password",
    "Another session changed the password at the same time. Try again with the new one.",
  )
