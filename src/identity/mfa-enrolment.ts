import { eq } from "drizzle-orm"
import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { millis, millisFrom, now } from "../core/time"
import type { Tx } from "../store/store"
import { hashOfBackup, mfaContext, newBackupCodes, stepOf } from "./mfa-codes"
import { otplib, uqr } from "./mfa-libraries"
import { backupCodes } from "./tables"
import { asUser, recordForUser } from "./user-log"
import * as users from "./users"

const PENDING_MILLISECONDS = 15 * 60_000

interface Pending {
  secret: string
  code_hashes: string[]
}

/** What is shown once, and asked for by nobody again. */
export interface Enrolment {
  secret: string
  otpauth_url: string
  /** An SVG image as a data URL. */
  qr_code: string
  backup_codes: string[]
}

/** Nothing is asked for yet at sign-in: `complete` has to follow within 15 minutes. */
export async function begin(
  tx: Tx,
  secrets: Secrets,
  user_id: string,
  issuer: string,
): Promise<Enrolment> {
  const user = await users.hold(tx, user_id)
  if (user.mfa_secret)
    fail(
      "mfa_already_enabled",
      "A second factor is on already. Turn it off before you begin with another one.",
    )
  const { generateSecret, generateURI } = otplib()
  const secret = generateSecret()
  const backup_codes = newBackupCodes()
  const code_hashes = backup_codes.map((code) => hashOfBackup(secrets, user_id, code))
  const pending: Pending = { secret, code_hashes }
  const mfa_pending = secrets.seal(JSON.stringify(pending), mfaContext(user_id, "mfa_pending"))
  await users.set(tx, user_id, { mfa_pending, mfa_pending_at: now() })
  const otpauth_url = generateURI({ issuer, label: user.email, secret })
  return { secret, otpauth_url, qr_code: qrCode(otpauth_url), backup_codes }
}

const qrCode = (text: string) =>
  `data:image/svg+xml;base64,${Buffer.from(uqr().renderSVG(text)).toString("base64")}`

/** The enrolment that waits. Throws 400 `no_pending_enrollment` for none, and for an old one. */
export function pendingOf(secrets: Secrets, user: users.UserRow): Pending {
  const { mfa_pending, mfa_pending_at } = user
  const age = millis() - millisFrom(mfa_pending_at ?? "")
  if (!mfa_pending || !(age <= PENDING_MILLISECONDS)) {
    return fail(
      "no_pending_enrollment",
      "No second factor waits for its first code. Begin with POST /v1/users/me/mfa/enroll.",
    )
  }
  return JSON.parse(secrets.open(mfa_pending, mfaContext(user.id, "mfa_pending"))) as Pending
}

/** Throws 400 `invalid_code`. Outside of a transaction: the check is asynchronous. */
export async function proveFirst(pending: Pending, code: string): Promise<number> {
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
  { pending, step, ip }: { pending: Pending; step: number; ip: string },
): Promise<void> {
  const user = await users.hold(tx, id)
  // Another enrolment may have begun meanwhile, or this one ended: the code was not for that.
  if (!mfa_pending || user.mfa_pending !== mfa_pending) {
    fail(
      "no_pending_enrollment",
      "No second factor waits for its first code. Begin with POST /v1/users/me/mfa/enroll.",
    )
  }
  const mfa_secret = secrets.seal(pending.secret, mfaContext(id, "mfa_secret"))
  const none = { mfa_pending: null, mfa_pending_at: null }
  await users.set(tx, id, { mfa_secret, mfa_last_step: step, ...none })
  await tx.delete(backupCodes).where(eq(backupCodes.user_id, id))
  const codes = pending.code_hashes.map((code_hash) => ({
    user_id: id,
    code_hash,
    created_at: now(),
  }))
  await tx.insert(backupCodes).values(codes)
  await recordForUser(tx, user, asUser(user, ip), "mfa.enabled")
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
