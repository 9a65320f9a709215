import { and, eq } from "drizzle-orm"
import type { SQLiteColumn } from "drizzle-orm/sqlite-core"
import type { Secrets } from "../../core/secrets"
import { now } from "../../core/time"
import { hashOfBackup, newBackupCodes, setBackupCodes } from "../../sign-in/second-factors"
import type { Tx } from "../../store/store"
import { type EndUserRow, setUser } from "../end-users"
import type { AuthEnvironment } from "../environments"
import type { MfaMethod } from "../tables"
import { emitUser, type UserEventFacts } from "../user-events"
import { userBackupCodes, userFactors, userPasskeys } from "./tables"

/**
 * A locked user has one second factor more: from now on sign-in asks for one. `user.mfa_enabled` tells of the first.
 * Nothing changes where they have the method.
 */
export async function addMethod(
  tx: Tx,
  environment: AuthEnvironment,
  user: EndUserRow,
  method: MfaMethod,
  facts: UserEventFacts,
): Promise<EndUserRow> {
  const { mfa_methods } = user
  if (mfa_methods.includes(method)) return user
  const is_first = mfa_methods.length === 0
  const changed = await setUser(tx, user, {
    mfa_methods: [...mfa_methods, method],
    ...(is_first && { mfa_enabled_at: now() }),
  })
  const told = { ...facts, mfa_method: method }
  if (is_first) await emitUser(tx, environment, changed, "user.mfa_enabled", told)
  return changed
}

/**
 * A locked user has the method no more. Passkeys themselves are the caller's. With the last method the backup codes
 * end, and `user.mfa_disabled` tells of it.
 */
export async function removeMethod(
  tx: Tx,
  environment: AuthEnvironment,
  user: EndUserRow,
  method: MfaMethod,
  facts: UserEventFacts,
): Promise<EndUserRow> {
  const left = user.mfa_methods.filter((one) => one !== method)
  if (left.length === 0) return haveNone(tx, environment, user, { ...facts, mfa_method: method })
  if (method !== "passkey")
    await tx
      .delete(userFactors)
      .where(and(ofUser(userFactors, user), eq(userFactors.method, method)))
  return setUser(tx, user, { mfa_methods: left })
}

/** A locked user has no second factor any more: no secret, passkey, backup code, or enrolment that waits. */
export async function removeAllMethods(
  tx: Tx,
  environment: AuthEnvironment,
  user: EndUserRow,
  facts: UserEventFacts,
): Promise<EndUserRow> {
  await tx.delete(userPasskeys).where(ofUser(userPasskeys, user))
  return haveNone(tx, environment, user, facts)
}

/** Rows of a user. */
export const ofUser = (
  { project_id, user_id }: { project_id: SQLiteColumn; user_id: SQLiteColumn },
  user: Pick<EndUserRow, "id" | "project_id">,
) => and(eq(project_id, user.project_id), eq(user_id, user.id))

async function haveNone(
  tx: Tx,
  environment: AuthEnvironment,
  user: EndUserRow,
  facts: UserEventFacts,
): Promise<EndUserRow> {
  await tx.delete(userFactors).where(ofUser(userFactors, user))
  await tx.delete(userBackupCodes).where(ofUser(userBackupCodes, user))
  const changed = await setUser(tx, user, { mfa_methods: [], mfa_enabled_at: null })
  await emitUser(tx, environment, changed, "user.mfa_disabled", facts)
  return changed
}

/** Ten new backup codes of a locked user, shown only now. Those before them work no more. */
export async function newBackupCodesFor(
  tx: Tx,
  secrets: Secrets,
  user: EndUserRow,
): Promise<string[]> {
  const codes = newBackupCodes()
  await takeBackupCodes(tx, user, hashesOf(secrets, user, codes))
  return codes
}

/** What is kept of backup codes. */
export const hashesOf = (secrets: Secrets, { id }: EndUserRow, codes: string[]): string[] =>
  codes.map((code) => hashOfBackup(secrets, id, code))

/** From now on a locked user has these backup codes and no others. */
export const takeBackupCodes = (
  tx: Tx,
  { id: user_id, project_id }: EndUserRow,
  code_hashes: string[],
): Promise<void> => setBackupCodes(tx, userBackupCodes, { user_id, code_hashes }, { project_id })
