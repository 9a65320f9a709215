import { and, eq, isNull } from "drizzle-orm"
import type { Secrets } from "../core/secrets"
import { millis, now } from "../core/time"
import type { Tx } from "../store/store"
import { kitTable, type OwnColumns, type OwnerTable } from "./owner-tables"
import type { backupCodeColumns } from "./person-columns"
import { randomLetters } from "./tokens"

/**
 * Libraries that only a second factor needs. They are loaded at their first use, because most servers
 * run for days without one and each library takes some megabytes of memory.
 */
const otplib = (): typeof import("otplib") => require("otplib")
const uqr = (): typeof import("uqr") => require("uqr")

/** One step before and after the present one, for clocks that differ. */
const STEP_SECONDS = 30

const BACKUP_CODES = 10
const ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
const HALF = 5

/** Only digits are the app's; everything else can only be a recovery code. */
export const isTotp = (code: string) => /^\d{6}$/.test(code.replaceAll(" ", ""))

/** The time step that a code belongs to (RFC 6238); undefined for a wrong code. */
export async function stepOf(secret: string, code: string): Promise<number | undefined> {
  const token = code.replaceAll(" ", "")
  if (!isTotp(token)) return undefined
  const epoch = Math.floor(millis() / 1000)
  const result = await otplib().verify({ secret, token, epoch, epochTolerance: STEP_SECONDS })
  return result.valid ? Math.floor(epoch / STEP_SECONDS) + result.delta : undefined
}

/** A new secret for an authenticator app, as a text, a URL and the picture of that URL. */
export function newTotp({ issuer, label }: { issuer: string; label: string }) {
  const { generateSecret, generateURI } = otplib()
  const secret = generateSecret()
  const otpauth_url = generateURI({ issuer, label, secret })
  return { secret, otpauth_url, qr_code: qrCode(otpauth_url) }
}

const qrCode = (text: string) =>
  `data:image/svg+xml;base64,${Buffer.from(uqr().renderSVG(text)).toString("base64")}`

type BackupColumns = ReturnType<typeof backupCodeColumns>
type BackupTable = OwnerTable<BackupColumns>

/** Ten backup codes, each of two halves with five unambiguous characters: 49 bits each. */
export const newBackupCodes = (): string[] =>
  Array.from({ length: BACKUP_CODES }, () => `${half()}-${half()}`)

const half = () => randomLetters(ALPHABET, HALF)

/** Under a key of the instance: 49 bits alone could be tried out from a stolen database. */
export function hashOfBackup(secrets: Secrets, user_id: string, code: string): string {
  const plain = code.toLowerCase().replaceAll(/[\s-]/g, "")
  return secrets.mac("backup code", `${user_id}:${plain}`).toString("base64url")
}

/** From now on the user has these backup codes and no others. */
export async function setBackupCodes<Table extends BackupTable>(
  tx: Tx,
  table: Table,
  { user_id, code_hashes }: { user_id: string; code_hashes: string[] },
  columns: OwnColumns<Table, keyof BackupColumns>,
): Promise<void> {
  const codes = kitTable<BackupColumns>(table)
  await tx.delete(codes).where(eq(codes.user_id, user_id))
  const fresh = { ...columns, user_id, created_at: now() }
  await tx.insert(codes).values(code_hashes.map((code_hash) => ({ ...fresh, code_hash })))
}

/** Uses up a backup code; false for a wrong one, and for one that was used. */
export async function spendBackupCode(
  tx: Tx,
  table: BackupTable,
  { user_id, code_hash }: { user_id: string; code_hash: string },
): Promise<boolean> {
  const codes = kitTable<BackupColumns>(table)
  const mine = and(eq(codes.user_id, user_id), eq(codes.code_hash, code_hash))
  const change = tx.update(codes).set({ used_at: now() })
  return (await change.where(and(mine, isNull(codes.used_at))).returning()).length > 0
}
