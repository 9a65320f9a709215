import type { Static } from "@sinclair/typebox"
import { and, eq, inArray, isNull } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { conflict, fail } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import { comparable, isName } from "../lib/address"
import { fieldsOf } from "../lib/record-fields"
import { closeLinks } from "../sign-in/links"
import * as passwords from "../sign-in/passwords"
import { forUpdate } from "../store/columns"
import { rowById, rowForUpdate } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { ConsoleUser, type Seats } from "./schemas"
import {
  type AccountRole,
  accountMembers,
  accounts,
  backupCodes,
  consoleSessions,
  consoleUsers,
  mfaChallenges,
  passwordHistory,
  passwordResets,
  refreshTokens,
} from "./tables"

export type UserRow = typeof consoleUsers.$inferSelect

type NewUser = Pick<UserRow, "email" | "name" | "password_hash" | "operator">

/** Throws 409 `conflict` when the address has a user already, in any spelling. */
export async function create(tx: Tx, wanted: NewUser): Promise<UserRow> {
  const row: UserRow = {
    id: newId(),
    ...wanted,
    email_key: comparable(wanted.email),
    locale: "en",
    timezone: "UTC",
    status: "active",
    mfa_secret: null,
    mfa_pending: null,
    mfa_pending_at: null,
    mfa_last_step: null,
    created_at: now(),
    updated_at: now(),
    last_login_at: null,
  }
  const made = await tx.insert(consoleUsers).values(row).onConflictDoNothing().returning()
  if (made.length === 0) conflict("email_taken", null, "A user with this email exists already.")
  await passwords.remember(tx, passwordHistory, {
    user_id: row.id,
    password_hash: row.password_hash,
  })
  return row
}

/**
 * The form in which addresses are compared. A text that no database can search for becomes "",
 * which no user has.
 */
export const emailKey = (email: string): string => (isName(email) ? comparable(email) : "")

export async function byEmail(db: Reader, email: string): Promise<UserRow | undefined> {
  const own = eq(consoleUsers.email_key, emailKey(email))
  const [row] = await db.select().from(consoleUsers).where(own)
  return row
}

/** Throws 404 `user_not_found`. */
export const find = async (db: Reader, id: string): Promise<UserRow> =>
  (await rowById(db, consoleUsers, id)) ?? noUser()

/** As `find`, with the row locked until the transaction ends. */
export const findForUpdate = async (tx: Tx, id: string): Promise<UserRow> =>
  (await rowForUpdate(tx, consoleUsers, id)) ?? noUser()

const noUser = () => fail("user_not_found", "There is no such user.")

export async function set(tx: Tx, id: string, changes: Partial<UserRow>): Promise<UserRow> {
  const whole = { ...changes, updated_at: now() }
  await tx.update(consoleUsers).set(whole).where(eq(consoleUsers.id, id))
  return find(tx, id)
}

/** Puts a new password in place; no older mail sets another. Sessions are the caller's business. */
export async function setPassword(tx: Tx, user_id: string, password_hash: string): Promise<void> {
  await closeLinks(tx, passwordResets, eq(passwordResets.user_id, user_id))
  await set(tx, user_id, { password_hash })
  await passwords.remember(tx, passwordHistory, { user_id, password_hash })
}

/** The ConsoleUser record of the contract. */
export const toResponse = (row: UserRow) =>
  fieldsOf(ConsoleUser, { ...row, mfa_enabled: row.mfa_secret !== null })

export type UserResponse = ReturnType<typeof toResponse>

type UserSeat = Static<typeof Seats>[number]

/** The accounts that a person belongs to, oldest first. */
export function accountsOf(db: Reader, user_id: string): Promise<UserSeat[]> {
  return db
    .select({ id: accounts.id, name: accounts.name, role: accountMembers.role })
    .from(accountMembers)
    .innerJoin(accounts, eq(accounts.id, accountMembers.account_id))
    .where(and(eq(accountMembers.user_id, user_id), isNull(accounts.deleting_at)))
    .orderBy(accounts.id)
}

/** Forgets a user with all sessions and codes; what accounts know of the user is not touched. */
export async function remove(tx: Tx, id: string): Promise<void> {
  const sessions = await tx
    .delete(consoleSessions)
    .where(eq(consoleSessions.user_id, id))
    .returning({ id: consoleSessions.id })
  for (const session of sessions) {
    await tx.delete(refreshTokens).where(eq(refreshTokens.session_id, session.id))
  }
  for (const rows of [backupCodes, mfaChallenges, passwordResets, passwordHistory]) {
    await tx.delete(rows).where(eq(rows.user_id, id))
  }
  await tx.delete(consoleUsers).where(eq(consoleUsers.id, id))
}

/** The addresses of the active members of an account that have one of the roles. */
export async function emailsInAccount(
  db: Reader,
  account_id: string,
  roles: AccountRole[],
): Promise<string[]> {
  const members = db
    .select({ email: consoleUsers.email })
    .from(accountMembers)
    .innerJoin(consoleUsers, eq(consoleUsers.id, accountMembers.user_id))
  const ours = and(eq(accountMembers.account_id, account_id), inArray(accountMembers.role, roles))
  const active = eq(consoleUsers.status, "active")
  return (await members.where(and(ours, active))).map(({ email }) => email)
}

/** Throws 409 `conflict` unless another user runs the instance too. */
export async function requireOtherOperator(tx: Tx) {
  const runs = and(eq(consoleUsers.operator, true), eq(consoleUsers.status, "active"))
  const all = await forUpdate(tx.select({ id: consoleUsers.id }).from(consoleUsers).where(runs))
  if (all.length > 1) return
  conflict(
    "last_operator",
    all[0]?.id ?? null,
    "This user is the last operator of the instance. Make another user an operator first.",
  )
}

/** Writes down what concerns every account of a person in each of them. */
export async function recordInAccounts(
  tx: Tx,
  user_id: string,
  by: audit.By,
  entry: Omit<audit.NewAuditEntry, "account_id">,
): Promise<void> {
  const seats = tx.select().from(accountMembers).where(eq(accountMembers.user_id, user_id))
  for (const { account_id } of await seats.orderBy(accountMembers.account_id)) {
    await audit.record(tx, by, { account_id, ...entry })
  }
}

/** A change of a person's own safety, for all accounts of the person. */
export const record = (
  tx: Tx,
  { id }: Pick<UserRow, "id">,
  by: audit.By,
  action: string,
  change: audit.AuditChange = {},
) => recordInAccounts(tx, id, by, { action, target: { type: "user", id }, ...change })

type Named = Pick<UserRow, "id" | "email" | "name">

/** As `record`, of what the person did from this address. */
export const recordOwn = (
  tx: Tx,
  user: Named,
  ip: string | null,
  action: string,
  change?: audit.AuditChange,
) => record(tx, user, asUser(user, ip), action, change)

/** The person acts, from this address. */
export const asUser = ({ id, email, name }: Named, ip: string | null): audit.By => ({
  actor: { type: "user", id, name: name ?? email },
  ip,
})
