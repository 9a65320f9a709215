import { fail } from "../core/errors"
import { keepAnswer } from "../http/idempotency"
import type { Call } from "../http/route"
import { issueCode, newCode } from "../sign-in/codes"
import { takeLink } from "../sign-in/links"
import type { Tx } from "../store/store"
import type { AuthParts } from "./auth-parts"
import { type EndUserRow, emailKeyOf, findForUpdate, setUser } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { countSend } from "./guesses"
import { linkSubscriber } from "./linked-subscriber"
import { expiredLink, LINKS, linksAmong, prepareLink } from "./mailed-links"
import { requireOwnCode } from "./proof"
import { requireRedirect } from "./redirects"
import { userLinks } from "./tables"
import { CODE_SECONDS, codeRow, codesOf } from "./user-codes"
import { emitUser, type UserEventFacts } from "./user-events"

export const VERIFY_SECONDS = LINKS.verify_email.seconds

const SENT = { data: { success: true as const, expires_in: VERIFY_SECONDS } }

/**
 * Mails a link that verifies the address for a day, and a code that the signed-in user may enter for ten minutes.
 * Throws 409 `already_verified`, 422 `invalid_url`, 429 `otp_send_rate_limit_exceeded`, 503 `email_not_configured`.
 */
export async function sendVerification(
  parts: AuthParts,
  environment: AuthEnvironment,
  user: EndUserRow,
  redirect_url: string | undefined,
  { ip, claim }: Pick<Call, "ip" | "claim">,
): Promise<typeof SENT> {
  const { id: user_id, email, email_key, name, locale } = user
  if (!email || !email_key)
    return fail("validation_error", "This user has no email address.", { reason: "no_email" })
  if (user.email_verified)
    return fail("already_verified", "The email address of this user is verified already.")
  if (redirect_url !== undefined) requireRedirect(environment, redirect_url)
  await parts.mail.requireSender(environment, email)
  await countSend(parts, environment, { identifier: email_key, ip })
  const code = newCode()
  const letter = await prepareLink(parts, environment, {
    ...{ kind: "verify_email", to: { email, name, locale }, redirect_url, variables: { code } },
  })
  await parts.store.tx(async (tx) => {
    const message_id = await letter.accept(tx, user_id)
    const row = codeRow(environment, place(email_key), { user_id, message_id })
    await issueCode(tx, codesOf(parts.secrets), { seconds: CODE_SECONDS, code }, row)
    await keepAnswer(tx, claim, SENT)
  })
  return SENT
}

const place = (identifier: string) => ({ purpose: "verify" as const, identifier })

/** By the token of the mail, which is all the proof that is asked for. Throws 422 `otp_expired`. */
export const confirmByToken = (
  { store }: AuthParts,
  environment: AuthEnvironment,
  token: string,
  ip: string,
): Promise<EndUserRow> =>
  store.tx(async (tx) => {
    const link = await takeLink(tx, userLinks, token, linksAmong(environment, "verify_email"))
    if (!link?.user_id) return expiredLink()
    const user = await findForUpdate(tx, environment.project_id, link.user_id)
    if (user.email_key !== emailKeyOf(link.email)) return expiredLink()
    return verifyEmail(tx, environment, user, { ip_address: ip })
  })

/** By the code of the mail, for its own user. Throws 422 `invalid_otp`, `otp_expired`, 400 `otp_max_attempts`. */
export async function confirmByCode(
  parts: AuthParts,
  environment: AuthEnvironment,
  user: EndUserRow,
  code: string,
  ip: string,
): Promise<EndUserRow> {
  const { settle } = await requireOwnCode(parts, environment, user, "verify", code)
  return parts.store.tx(async (tx) => {
    await settle(tx)
    const same = await findForUpdate(tx, environment.project_id, user.id)
    return verifyEmail(tx, environment, same, { ip_address: ip })
  })
}

/** Notes that the user reads mail to the address of the locked row, with `user.email_verified` the first time. */
async function verifyEmail(
  tx: Tx,
  environment: AuthEnvironment,
  user: EndUserRow,
  facts: UserEventFacts,
): Promise<EndUserRow> {
  if (user.email_verified) return user
  const verified = await linkSubscriber(tx, await setUser(tx, user, { email_verified: true }))
  await emitUser(tx, environment, verified, "user.email_verified", facts)
  return verified
}
