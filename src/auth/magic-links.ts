import type { Static } from "@sinclair/typebox"
import { fail, meaningOf } from "../core/errors"
import { keepAnswer } from "../http/idempotency"
import { takeLink } from "../sign-in/links"
import type { Tx } from "../store/store"
import { isKnown, signInByAddress } from "./address-sign-in"
import type { AuthParts } from "./auth-parts"
import { requireCaptcha } from "./captcha"
import type { SendCall } from "./code-sign-in"
import { BY_EMAIL } from "./code-ways"
import { byEmail, emailKeyOf } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { countSend, RESEND_SECONDS } from "./guesses"
import { expiredLink, LINKS, linksAmong, prepareLink } from "./mailed-links"
import { requireEmailDomain, requireMethod } from "./methods"
import { pretend } from "./pretended"
import { requireRedirect } from "./redirects"
import type { SignInAnswer } from "./schemas"
import type { UserClient } from "./sign-in"
import { userLinks } from "./tables"

interface MagicLinkWish {
  email: string
  redirect_url: string
  /** To register also signs in a person that has a user. */
  purpose: "login" | "register"
}

/**
 * Mails a link that signs in, once and for 15 minutes. The answer is the same whether the address has a user or not;
 * only of a user that is not active it tells so, where the environment hides nothing.
 */
export async function sendMagicLink(
  parts: AuthParts,
  call: SendCall,
  environment: AuthEnvironment,
  { email, redirect_url, purpose }: MagicLinkWish,
) {
  const { store, mail } = parts
  const { ip, claim } = call
  requireMethod(environment, "magic_link")
  requireRedirect(environment, redirect_url)
  if (purpose === "register") requireEmailDomain(environment, email)
  await requireCaptcha(parts, environment, call)
  await mail.requireSender(environment, email)
  await countSend(parts, environment, { identifier: emailKeyOf(email), ip })
  const user = await byEmail(store.read, environment, email)
  if (isKnown(user) && user.status !== "active" && !environment.settings.hide_account_existence)
    return fail("user_inactive", meaningOf("user_inactive"))
  const to = { email, name: user?.name ?? null, locale: user?.locale ?? null }
  const wish = { kind: "magic_link" as const, to, redirect_url, purpose }
  const letter = await prepareLink(parts, environment, wish)
  const is_for_somebody = user ? isKnown(user) : purpose === "register"
  const { seconds: expires_in } = LINKS.magic_link
  const data = { success: true as const, expires_in, resend_after: RESEND_SECONDS }
  const accept = (tx: Tx) => letter.accept(tx, user?.id ?? null)
  await Promise.all([
    store.tx(async (tx) => {
      if (is_for_somebody) await accept(tx)
      await keepAnswer(tx, claim, { data })
    }),
    is_for_somebody || pretend(store, accept),
  ])
  return data
}

/**
 * Signs in the holder of the token of the mail, or the code that its page handed to the application. Throws 422
 * `otp_expired`.
 */
export function verifyMagicLink(
  parts: AuthParts,
  environment: AuthEnvironment,
  token: string,
  client: UserClient,
): Promise<Static<typeof SignInAnswer>> {
  requireMethod(environment, "magic_link")
  const proof = { provider: "magic_link" as const, amr: ["link"], client }
  return parts.store.tx(async (tx) => {
    const among = linksAmong(environment, "magic_link", "magic_link_code")
    const link = await takeLink(tx, userLinks, token, among)
    if (!link) return expiredLink()
    const profile = link.purpose === "register" ? {} : undefined
    const proven = { address: link.email, profile, ...proof }
    return (await signInByAddress(tx, parts, BY_EMAIL, environment, proven)) ?? expiredLink()
  })
}
