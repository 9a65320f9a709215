import type { Static } from "@sinclair/typebox"
import { and, eq, isNull, lt, or } from "drizzle-orm"
import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { millis, millisFrom, now } from "../core/time"
import {
  hashOfBackup,
  isTotp,
  newBackupCodes,
  newTotp,
  setBackupCodes,
  spendBackupCode,
  stepOf,
} from "../sign-in/second-factors"
import type { Tx } from "../store/store"
import type { Enrolled } from "./schemas"
import { backupCodes, consoleUsers } from "./tables"
import * as users from "./users"

/** The context in which the secret of a user is sealed. */
const mfaContext = (user_id: string, column: "mfa_secret" | "mfa_pending") =>
  `console_users:${user_id}:${column}`

/** A second factor that is right, but may have been used before: `spend` decides. */
export type MfaProof = { step: number } | { code_hash: string }

/** Undefined for a code that cannot be right. */
export async function prove(
  secrets: Secrets,
  user: users.UserRow,
  code: string,
): Promise<MfaProof | undefined> {
  if (!user.mfa_secret) return undefined
  if (!isTotp(code)) return { code_hash: hashOfBackup(secrets, user.id, code) }
  const secret = secrets.open(user.mfa_secret, mfaContext(user.id, "mfa_secret"))
  const step = await stepOf(secret, code)
  return step === undefined ? undefined : { step }
}

/** Takes the proof, once: false for a step not after the last one, and for a spent code. */
export async function spend(tx: Tx, user_id: string, proof: MfaProof): Promise<boolean> {
  if ("step" in proof) {
    const last = consoleUsers.mfa_last_step
    const fresh = and(eq(consoleUsers.id, user_id), or(isNull(last), lt(last, proof.step)))
    const change = tx.update(consoleUsers).set({ mfa_last_step: proof.step }).where(fresh)
    return (await change.returning({ id: consoleUsers.id })).length > 0
  }
  return spendBackupCode(tx, backupCodes, { user_id, ...proof })
}

const PENDING_MILLISECONDS = 15 * 60_000

interface PendingEnrolment {
  secret: string
  code_hashes: string[]
}

/** Nothing is asked for yet at sign-in: `complete` has to follow within 15 minutes. */
export async function begin(
  tx: Tx,
  secrets: Secrets,
  user_id: string,
  issuer: string,
): Promise<Static<typeof Enrolled>> {
  const user = await users.findForUpdate(tx, user_id)
  if (user.mfa_secret)
    fail(
      "mfa_already_enabled",
      "A second factor is on already. Turn it off before you begin with another one.",
    )
  const { secret, otpauth_url, qr_code } = newTotp({ issuer, label: user.email })
  const backup_codes = newBackupCodes()
  const code_hashes = backup_codes.map((code) => hashOfBackup(secrets, user_id, code))
  const pending: PendingEnrolment = { secret, code_hashes }
  const mfa_pending = secrets.seal(JSON.stringify(pending), mfaContext(user_id, "mfa_pending"))
  await users.set(tx, user_id, { mfa_pending, mfa_pending_at: now() })
  return { secret, otpauth_url, qr_code, backup_codes }
}

/** The enrolment that waits. Throws 400 `no_pending_enrollment` for none, and for an old one. */
export function pendingOf(secrets: Secrets, user: users.UserRow): PendingEnrolment {
  const { mfa_pending, mfa_pending_at } = user
  const age = millis() - millisFrom(mfa_pending_at ?? "")
  if (!mfa_pending || !(age <= PENDING_MILLISECONDS)) return nonePending()
  return JSON.parse(secrets.open(mfa_pending, mfaContext(user.id, "mfa_pending")))
}

const nonePending = () =>
  fail(
    "no_pending_enrollment",
    "No second factor waits for its first code. Begin with POST /v1/users/me/mfa/enroll.",
  )

/** Throws 400 `invalid_code`. Outside of a transaction: the check is asynchronous. */
export async function proveFirst(pending: PendingEnrolment, code: string): Promise<number> {
  const step = await stepOf(pending.secret, code)
  return (
    step ??
    fail(
      "invalid_code",
      "This code is not right. Check the clock of your device and enter the newest code.",
    )
  )
}

/** From now on sign-in asks for codes; the one that proved the enrolment is spent. */
export async function complete(
  tx: Tx,
  secrets: Secrets,
  { id, mfa_pending }: users.UserRow,
  { pending, step, ip }: { pending: PendingEnrolment; step: number; ip: string },
): Promise<void> {
  const user = await users.findForUpdate(tx, id)
  // Another enrolment may have begun meanwhile, or this one ended: the code was not for that.
  if (!mfa_pending || user.mfa_pending !== mfa_pending) nonePending()
  const mfa_secret = secrets.seal(pending.secret, mfaContext(id, "mfa_secret"))
  const none = { mfa_pending: null, mfa_pending_at: null }
  await users.set(tx, id, { mfa_secret, mfa_last_step: step, ...none })
  const { code_hashes } = pending
  await setBackupCodes(tx, backupCodes, { user_id: id, code_hashes }, {})
  await users.recordOwn(tx, user, ip, "mfa.enabled")
}

/** Takes away the second factor with everything of it. */
export async function clear(tx: Tx, user_id: string): Promise<void> {
  await tx.delete(backupCodes).where(eq(backupCodes.user_id, user_id))
  await users.set(tx, user_id, {
    mfa_secret: null,
    mfa_pending: null,
    mfa_pending_at: null,
    mfa_last_step: null,
  })
}
