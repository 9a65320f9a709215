import { randomBytes } from "node:crypto"
import { and, eq, isNull, lt, or } from "drizzle-orm"
import type { Secrets } from "../core/secrets"
import { millis, now } from "../core/time"
import type { Tx } from "../store/store"
import { otplib } from "./mfa-libraries"
import { backupCodes, consoleUsers } from "./tables"
import type { UserRow } from "./users"

/** One step before and after the present one, for clocks that differ. */
const STEP_SECONDS = 30

const BACKUP_CODES = 10
const ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
const HALF = 5

/** Only digits are the app's; everything else can only be a recovery code. */
export const isTotp = (code: string) => /^\d{6}$/.test(code.replaceAll(" ", ""))

/** The context in which the secret of a user is sealed. */
export const mfaContext = (user_id: string, column: "mfa_secret" | "mfa_pending") =>
  `console_users:${user_id}:${column}`

/** The time step that a code belongs to (RFC 6238); undefined for a wrong code. */
export async function stepOf(secret: string, code: string): Promise<number | undefined> {
  const token = code.replaceAll(" ", "")
  if (!isTotp(token)) return undefined
  const epoch = Math.floor(millis() / 1000)
  const result = await otplib().verify({ secret, token, epoch, epochTolerance: STEP_SECONDS })
  return result.valid ? Math.floor(epoch / STEP_SECONDS) + result.delta : undefined
}

/** A second factor that is right, but may have been used before: `spend` decides. */
export type Proof = { step: number } | { code_hash: string }

/** Undefined for a code that cannot be right. */
export async function prove(
  secrets: Secrets,
  user: UserRow,
  code: string,
): Promise<Proof | undefined> {
  if (!user.mfa_secret) return undefined
  if (!isTotp(code)) return { code_hash: hashOfBackup(secrets, user.id, code) }
  const secret = secrets.open(user.mfa_secret, mfaContext(user.id, "mfa_secret"))
  const step = await stepOf(secret, code)
  return step === undefined ? undefined : { step }
}

/** Takes the proof, once: false for a step not after the last one, and for a spent code. */
export async function spend(tx: Tx, user_id: string, proof: Proof): Promise<boolean> {
  if ("step" in proof) {
    const last = consoleUsers.mfa_last_step
    const fresh = and(eq(consoleUsers.id, user_id), or(isNull(last), lt(last, proof.step)))
    const change = tx.update(consoleUsers).set({ mfa_last_step: proof.step }).where(fresh)
    return (await change.returning({ id: consoleUsers.id })).length > 0
  }
  const unused = and(
    eq(backupCodes.user_id, user_id),
    eq(backupCodes.code_hash, proof.code_hash),
    isNull(backupCodes.used_at),
  )
  const change = tx.update(backupCodes).set({ used_at: now() }).where(unused)
  return (await change.returning({ user_id: backupCodes.user_id })).length > 0
}

/** Ten of them, in two halves of five characters that nobody confuses: 49 bits each. */
export const newBackupCodes = (): string[] =>
  Array.from({ length: BACKUP_CODES }, () => `${characters(HALF)}-${characters(HALF)}`)

/** Without a bias: bytes beyond the last whole round of the alphabet are thrown away. */
function characters(wanted: number): string {
  const fair = 256 - (256 % ALPHABET.length)
  let text = ""
  while (text.length < wanted) {
    for (const byte of randomBytes(wanted * 2)) {
      if (byte < fair && text.length < wanted) text += ALPHABET[byte % ALPHABET.length]
    }
  }
  return text
}

/** Under a key of the instance: 49 bits alone could be tried out from a stolen database. */
export function hashOfBackup(secrets: Secrets, user_id: string, code: string): string {
  const plain = code.toLowerCase().replaceAll(/[\s-]/g, "")
  return secrets.mac("backup code", `${user_id}:${plain}`).toString("base64url")
}
