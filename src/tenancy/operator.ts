import { and, asc, desc, eq, ne, or } from "drizzle-orm"
import { LOCAL } from "../audit-log/audit-log"
import { LIMIT_NAMES } from "../core/config-plans"
import { conflict, fail, invalid } from "../core/errors"
import { isUuid } from "../core/ids"
import { clear } from "../identity/mfa"
import { revokeAll } from "../identity/sessions"
import { type AccountStatus, consoleUsers, accounts as rows } from "../identity/tables"
import * as users from "../identity/users"
import { isPlan, PLAN_NAMES } from "../plans/plans"
import * as passwords from "../sign-in/passwords"
import type { Reader, Store, Tx } from "../store/store"
import * as accounts from "./accounts"
import { INSTANCE_SLUG } from "./projects"
import { establish, type FirstOwner, requireUnowned, type SetupParts } from "./setup"

// What the operator of the instance does to accounts and users, with access to its data folder.
// None of these asks for a credential: they are for the local command only, never for a route.

/** Newest first. */
export const listAll = (db: Reader): Promise<accounts.AccountRow[]> =>
  db.select().from(rows).where(ne(rows.slug, INSTANCE_SLUG)).orderBy(desc(rows.id))

/** By id, slug or name. Throws 404, and 409 where several have the name. */
export async function named(db: Reader, name: string): Promise<accounts.AccountRow> {
  const called = isUuid(name) ? eq(rows.id, name) : or(eq(rows.slug, name), eq(rows.name, name))
  const found = await db
    .select()
    .from(rows)
    .where(and(called, ne(rows.slug, INSTANCE_SLUG)))
  const exact = found.find(({ slug }) => slug === name) ?? found[0]
  if (!exact) return fail("not_found", `There is no account with the id, slug or name ${name}.`)
  if (found.length === 1 || exact.slug === name) return exact
  const text = `Several accounts have the name ${name}. Give the id of one of them.`
  return conflict("several", null, text)
}

interface StatusChange {
  status: AccountStatus
  /** For the audit log and for the operator's memory; callers are not told. */
  reason: string | null
}

/** Acts on the next request of every key and every person of the account. */
export async function setStatus(tx: Tx, name: string, { status, reason }: StatusChange) {
  const before = await accounts.findForUpdate(tx, (await named(tx, name)).id)
  const status_reason = status === "active" ? null : reason
  const action = status === "active" ? "account.unlocked" : `account.${status}`
  return accounts.change(tx, before, { status, status_reason }, action, LOCAL)
}

export interface PlanChange {
  plan: string
  /** Numbers in place of the plan's; null for none, undefined for those there are. */
  limits: Record<string, number | null> | null | undefined
}

/** Throws 422 `validation_error` for a plan or limit that does not exist. */
export async function setPlan(tx: Tx, name: string, { plan, limits }: PlanChange) {
  if (!isPlan(plan))
    refuse("plan", `There is no plan ${plan}. The plans are ${PLAN_NAMES.join(", ")}.`)
  for (const [limit, value] of Object.entries(limits ?? {})) {
    const known = LIMIT_NAMES as readonly string[]
    if (!known.includes(limit))
      refuse(`limits.${limit}`, `There is no such limit. The limits are ${known.join(", ")}.`)
    const fits = value === null || (Number.isSafeInteger(value) && value >= 0)
    if (!fits)
      refuse(`limits.${limit}`, "The limit must be a whole number from 0, or null for unlimited.")
  }
  const before = await accounts.findForUpdate(tx, (await named(tx, name)).id)
  const changes = limits === undefined ? { plan } : { plan, limits }
  return accounts.change(tx, before, changes, "account.plan_changed", LOCAL)
}

function refuse(path: string, message: string): never {
  throw invalid(path, "invalid", message)
}

/** Setup without its token: same result. Throws 404 `not_found` once there is an owner. */
export async function bootstrap(
  parts: SetupParts,
  { password, ...owner }: FirstOwner & { password: string },
) {
  const password_hash = await passwords.hashNew(password)
  return parts.store.tx(async (tx) => {
    await requireUnowned(tx)
    const client = { ip: null, user_agent: null, client_name: "belfry admin" }
    return establish(tx, parts, { ...owner, password_hash }, client)
  })
}

/**
 * A new password for a person that lost the old one. Every session ends; with `keep_mfa: false` the second
 * factor goes too. Throws 404 `user_not_found`, 422 `weak_password`.
 */
export async function resetOwner(
  store: Store,
  { email, password, keep_mfa }: { email: string; password: string; keep_mfa: boolean },
): Promise<users.UserResponse> {
  const password_hash = await passwords.hashNew(password)
  return changeUser(store, email, "password.reset", async (tx, { id }) => {
    await users.setPassword(tx, id, password_hash)
    await users.set(tx, id, { status: "active" })
    if (!keep_mfa) await clear(tx, id)
    await revokeAll(tx, id)
  })
}

/** A locked user is signed out everywhere and cannot sign in. Throws 409 for the last operator. */
export const lockUser = (store: Store, email: string) =>
  changeUser(store, email, "user.locked", async (tx, { id, operator, status }) => {
    if (operator && status === "active") await users.requireOtherOperator(tx)
    await users.set(tx, id, { status: "locked" })
    await revokeAll(tx, id)
  })

export const unlockUser = (store: Store, email: string) =>
  changeUser(store, email, "user.unlocked", async (tx, { id }) => {
    await users.set(tx, id, { status: "active" })
  })

/**
 * Decides whether the user runs the instance. Throws 409 `conflict` when no user would be left that
 * runs it.
 */
export const setOperator = (store: Store, email: string, operator: boolean) =>
  changeUser(store, email, "user.operator_changed", async (tx, user) => {
    if (user.operator && !operator) await users.requireOtherOperator(tx)
    await users.set(tx, user.id, { operator })
  })

/** All users, oldest first. */
export async function listUsers(store: Store): Promise<users.UserResponse[]> {
  const rows = await store.read.select().from(consoleUsers).orderBy(asc(consoleUsers.id))
  return rows.map(users.toResponse)
}

function changeUser(
  store: Store,
  email: string,
  action: string,
  make: (tx: Tx, user: users.UserRow) => Promise<void>,
): Promise<users.UserResponse> {
  return store.tx(async (tx) => {
    const { id } =
      (await users.byEmail(tx, email)) ??
      fail("user_not_found", `There is no user with the email ${email}.`)
    const before = await users.findForUpdate(tx, id)
    await make(tx, before)
    const after = await users.find(tx, id)
    const shown = { before: statusOf(before), after: statusOf(after) }
    await users.record(tx, after, LOCAL, action, shown)
    return users.toResponse(after)
  })
}

const statusOf = (row: users.UserRow) => ({ ...users.toResponse(row), status: row.status })
