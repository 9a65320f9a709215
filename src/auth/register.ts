import { eq } from "drizzle-orm"
import { fail } from "../core/errors"
import { type Claim, keepAnswer } from "../http/idempotency"
import { closeLinks, takeLink } from "../sign-in/links"
import * as passwords from "../sign-in/passwords"
import type { Tx } from "../store/store"
import type { AuthParts } from "./auth-parts"
import {
  byEmail,
  type EndUserRow,
  emailKeyOf,
  findForUpdate,
  insertUser,
  setUser,
} from "./end-users"
import type { AuthEnvironment } from "./environments"
import { countRegistration } from "./guesses"
import { linkSubscriber } from "./linked-subscriber"
import { linksAmong, prepareLink } from "./mailed-links"
import { requireEmailDomain, requireMethod } from "./methods"
import { joinNewly } from "./organizations/join"
import { openInvitation, takeInvitation } from "./organizations/taken-invitations"
import { rememberPassword, rulesOf } from "./own-password"
import { pretend } from "./pretended"
import { givenOf } from "./profile-fields"
import type { AuthResultRecord } from "./schemas"
import { completeSignIn, createUser, type UserClient } from "./sign-in"
import { userLinks } from "./tables"

/** A person that registers; what is left out stays empty. */
export interface Registration {
  email: string
  password: string
  name?: string
  locale?: string
  metadata?: Record<string, unknown>
  /** Of the invitation's mail, or the code that its page handed over. */
  invitation_token?: string
}

/**
 * A new user with a password, signed in unless their address must be verified first; that mail leaves here. Throws 409
 * `conflict` for an address that has a user: where accounts are hidden and every address must be verified, it answers
 * as for a new one. The work is the same up to there.
 */
export async function register(
  parts: AuthParts,
  environment: AuthEnvironment,
  wanted: Registration,
  client: UserClient,
  claim: Claim | undefined,
): Promise<AuthResultRecord> {
  const { email, password, locale } = wanted
  const { require_verified_email, hide_account_existence } = environment.settings
  requireMethod(environment, "password")
  requireEmailDomain(environment, email)
  passwords.requireStrength(password, rulesOf(environment))
  const attempt = { identifier: emailKeyOf(email), ip: client.ip ?? "" }
  await countRegistration(parts, environment, attempt)

  const verifies = require_verified_email && wanted.invitation_token === undefined
  const to = { email, name: wanted.name ?? null, locale: locale ?? null }
  const [password_hash, letter] = await Promise.all([
    passwords.hash(password),
    verifies ? prepareLink(parts, environment, { kind: "verify_email", to }) : undefined,
  ])
  const finish = async (tx: Tx, user: EndUserRow) => {
    const provider = "password" as const
    const proven = { environment, user, provider, amr: ["pwd"], client, is_new: true }
    await rememberPassword(tx, environment, user, password_hash)
    await letter?.accept(tx, user.id)
    const answer = await completeSignIn(tx, parts, proven)
    if (!("user" in answer)) throw new Error("a new user has no second factor")
    return answer
  }
  const made = await parts.store.tx(async (tx) => {
    const user = await newcomer(tx, environment, wanted, password_hash)
    if (!user) return undefined
    const answer = await finish(tx, user)
    await keepAnswer(tx, claim, { data: answer })
    return answer
  })
  if (made) return made
  if (!hide_account_existence || !verifies) return refuseTaken()
  const data = await pretend(parts.store, async (tx) => {
    const user = await insertUser(tx, environment, { ...profileOf(wanted), password_hash })
    if (!user) throw new Error("nobody else has no address")
    const answer = await finish(tx, user)
    return { ...answer, user: { ...answer.user, email } }
  })
  if (claim) await parts.store.tx((tx) => keepAnswer(tx, claim, { data }))
  return data
}

const profileOf = ({ name, locale, metadata }: Registration) => ({
  name: name ?? null,
  locale: locale ?? null,
  metadata: metadata ?? {},
})

/** Undefined where the address has a user already. */
async function newcomer(
  tx: Tx,
  environment: AuthEnvironment,
  wanted: Registration,
  password_hash: string,
): Promise<EndUserRow | undefined> {
  const { email, invitation_token } = wanted
  if (invitation_token === undefined)
    return createUser(tx, environment, { ...profileOf(wanted), email, password_hash })
  const opened = await openInvitation(tx, environment, invitation_token)
  if (!opened) {
    const user = await invited(tx, environment, email, invitation_token)
    return activate(tx, user, wanted, password_hash)
  }
  if (opened.email_key !== emailKeyOf(email)) return refuseInvitation()
  const profile = { ...profileOf(wanted), email, email_verified: true, password_hash }
  const made = await createUser(tx, environment, profile)
  const user = made ?? (await activateKnown(tx, environment, wanted, password_hash))
  const { organization, role } = await takeInvitation(tx, environment, opened)
  await joinNewly(tx, user, organization, role)
  return user
}

/** The address was invited to the application, too. */
async function activateKnown(
  tx: Tx,
  environment: AuthEnvironment,
  wanted: Registration,
  password_hash: string,
): Promise<EndUserRow> {
  const known = await byEmail(tx, environment, wanted.email)
  if (known?.status !== "invited") return refuseTaken()
  const user = await findForUpdate(tx, environment.project_id, known.id)
  if (user.status !== "invited") return refuseTaken()
  await closeLinks(tx, userLinks, eq(userLinks.user_id, user.id))
  return activate(tx, user, wanted, password_hash)
}

async function activate(
  tx: Tx,
  user: EndUserRow,
  { name, locale, metadata }: Registration,
  password_hash: string,
): Promise<EndUserRow> {
  const active = { status: "active" as const, email_verified: true, password_hash }
  const changes = { ...givenOf({ name, locale, metadata }), ...active }
  return linkSubscriber(tx, await setUser(tx, user, changes))
}

async function invited(tx: Tx, environment: AuthEnvironment, email: string, token: string) {
  const invitations = linksAmong(environment, "invitation", "invitation_code")
  const link = await takeLink(tx, userLinks, token, invitations)
  if (!link?.user_id) return refuseInvitation()
  const user = await findForUpdate(tx, environment.project_id, link.user_id)
  const is_theirs = user.status === "invited" && user.email_key === emailKeyOf(email)
  return is_theirs ? user : refuseInvitation()
}

const refuseInvitation = () =>
  fail(
    "otp_expired",
    "This invitation has expired, was used already, or is for another address. Ask for a new one.",
  )

export const refuseTaken = (field = "email") =>
  fail("conflict", "A user has this email address already.", { field, reason: "email_taken" })
