import type { Static } from "@sinclair/typebox"
import { fail } from "../core/errors"
import * as passwords from "../sign-in/passwords"
import type { Tx } from "../store/store"
import type { AuthParts } from "./auth-parts"
import { endSessions } from "./end-sessions"
import {
  byEmail,
  type EndUserRow,
  emailKeyOf,
  findForUpdate,
  holdIdentifiers,
  setUser,
} from "./end-users"
import type { AuthEnvironment } from "./environments"
import { countRegistration } from "./guesses"
import { prepareLink } from "./mailed-links"
import type { OwnedUser } from "./managed-users"
import { requireEmailDomain, requireMethod } from "./methods"
import { rememberPassword, rulesOf } from "./own-password"
import { givenOf } from "./profile-fields"
import { type Registration, refuseTaken } from "./register"
import type { SignInAnswer } from "./schemas"
import { answerUnverified, completeSignIn, type UserClient } from "./sign-in"

type Conversion = Pick<Registration, "email" | "password" | "name">

/**
 * An anonymous user gets an address and a password, and stays the same user. Their device signs them in no more, and
 * their sessions end; the answer has a new one, unless the address must be verified first. Throws 409 `conflict` for a
 * known user, and for an address that has another user.
 */
export async function convert(
  parts: AuthParts,
  { environment, user }: OwnedUser,
  wanted: Conversion,
  client: UserClient,
): Promise<Static<typeof SignInAnswer>> {
  const { email, password } = wanted
  if (!user.is_anonymous) return refuseNamed()
  requireMethod(environment, "password")
  requireEmailDomain(environment, email)
  passwords.requireStrength(password, rulesOf(environment))
  const attempt = { identifier: emailKeyOf(email), ip: client.ip ?? "" }
  await countRegistration(parts, environment, attempt)

  const verifies = environment.settings.require_verified_email
  const to = { email, name: wanted.name ?? user.name, locale: user.locale }
  const [password_hash, letter] = await Promise.all([
    passwords.hash(password),
    verifies ? prepareLink(parts, environment, { kind: "verify_email", to }) : undefined,
  ])
  return parts.store.tx(async (tx) => {
    const named = await nameUser(tx, environment, user.id, { ...wanted, password_hash })
    const reason = "converted"
    await endSessions(tx, environment, named, { reason, ip_address: client.ip })
    await letter?.accept(tx, named.id)
    const proven = { environment, user: named, provider: "password", amr: ["pwd"], client }
    return letter ? answerUnverified(tx, proven) : completeSignIn(tx, parts, proven)
  })
}

/** The locked row, with its address and password. */
async function nameUser(
  tx: Tx,
  environment: AuthEnvironment,
  id: string,
  { email, name, password_hash }: Conversion & { password_hash: string },
): Promise<EndUserRow> {
  const user = await findForUpdate(tx, environment.project_id, id)
  if (!user.is_anonymous) return refuseNamed()
  await holdIdentifiers(tx, environment)
  const owner = await byEmail(tx, environment, email)
  if (owner && owner.id !== id) return refuseTaken()
  await rememberPassword(tx, environment, user, password_hash)
  const nobody_else = { is_anonymous: false, anonymous_device_id: null }
  const address = { email, email_verified: false, password_hash }
  return setUser(tx, user, { ...givenOf({ name }), ...address, ...nobody_else })
}

const refuseNamed = () =>
  fail("conflict", "This user is not anonymous.", { reason: "not_anonymous" })
