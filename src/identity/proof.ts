import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import type { Store, Tx } from "../store/store"
import { type Proof, prove } from "./mfa-codes"
import * as passwords from "./passwords"
import { BUCKETS, type Throttle } from "./throttle"
import * as users from "./users"

export interface ProofParts {
  store: Store
  secrets: Secrets
  throttle: Throttle
}

/**
 * Somebody who is signed in proves that it is still he. Throws 422 `invalid_current_password`, and
 * 429 for guessing, which a stolen session could be used for.
 */
export async function demandPassword(
  { store, throttle }: ProofParts,
  user_id: string,
  password: string,
): Promise<users.UserRow> {
  await throttle.take([BUCKETS.proof, user_id])
  const user = await users.find(store.read, user_id)
  if (!(await passwords.verify(password, user.password_hash))) {
    fail("invalid_current_password", "This is not your current password.")
  }
  return user
}

/** Throws 400 `mfa_not_enabled`, 401 `invalid_verification`. The proof is still to be spent. */
export async function demandCode(
  { store, secrets, throttle }: ProofParts,
  user_id: string,
  code: string,
): Promise<{ user: users.UserRow; proof: Proof }> {
  await throttle.take([BUCKETS.proof, user_id])
  const user = await users.find(store.read, user_id)
  if (!user.mfa_secret)
    fail("mfa_not_enabled", "No second factor is on, so nothing was turned off.")
  const proof = await prove(secrets, user, code)
  return proof ? { user, proof } : wrongCode()
}

export const wrongCode = () =>
  fail("invalid_verification", "This code is not right or was used before. Enter a new code.")

/** The proof was right: no guessing. */
export const forgive = ({ throttle }: ProofParts, tx: Tx, user_id: string) =>
  throttle.forgive(tx, [BUCKETS.proof, user_id])
