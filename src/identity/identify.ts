import { fail } from "../core/errors"
import type { Tx } from "../store/store"
import { prove, spend } from "./mfa-codes"
import * as passwords from "./passwords"
import { demandUnchanged, forgive, type SignInParts, turnsOf, wrong, wrongCode } from "./sign-in"
import { BUCKETS } from "./throttle"
import * as users from "./users"

export interface Identity {
  email: string
  password: string
  /** Of the app, or a recovery code; empty where no second factor is on. */
  code: string
}

/**
 * Password and second factor at once, for a form that keeps no session. Throws as `signIn` and
 * `answerChallenge`. The returned function settles it, once, in the transaction of what it allows.
 */
export async function identify(
  { store, secrets, throttle }: Omit<SignInParts, "sessions">,
  { email, password, code }: Identity,
  ip: string,
): Promise<(tx: Tx) => Promise<users.UserRow>> {
  const turns = await turnsOf(store.read, email, ip)
  await throttle.take(...turns)
  const user = await users.byEmail(store.read, email)
  const proven = await passwords.verify(password, user?.password_hash)
  if (!user || !proven || user.status !== "active") return wrong()
  const needs_code = user.mfa_secret !== null
  if (needs_code && code.trim() === "") {
    fail("invalid_totp", "A second factor is on. Enter the code of your authenticator app, too.")
  }
  if (needs_code) await throttle.take([BUCKETS.mfa, user.id])
  const proof = needs_code ? await prove(secrets, user, code) : undefined
  if (needs_code && !proof) return wrongCode(code)

  return async (tx) => {
    const same = await demandUnchanged(tx, user)
    if (same.mfa_secret !== user.mfa_secret) return wrong()
    if (proof && !(await spend(tx, user.id, proof))) return wrongCode(code)
    await forgive(tx, throttle, turns)
    await throttle.forgive(tx, [BUCKETS.mfa, user.id])
    return same
  }
}
