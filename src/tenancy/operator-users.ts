import { asc } from "drizzle-orm"
import { LOCAL } from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { clear } from "../identity/mfa-enrolment"
import * as passwords from "../identity/passwords"
import { revokeAll, type Sessions } from "../identity/sessions"
import { consoleUsers } from "../identity/tables"
import { recordForUser } from "../identity/user-log"
import * as users from "../identity/users"
import type { Store, Tx } from "../store/store"
import { type Established, establish } from "./establish"
import { demandUnowned, type Setup } from "./setup-token"

/**
 * What somebody with access to the data folder may always do, whoever forgot or lost what. None of
 * these asks for a credential: they are for the local command only, never for a route.
 */
export interface AdminParts {
  store: Store
}

export interface Bootstrap {
  email: string
  password: string
  name: string | null
  account_name: string
  project_name: string
}

/** Setup without its token: same result. Throws 404 `not_found` once there is an owner. */
export async function bootstrap(
  { store, sessions, setup }: AdminParts & { sessions: Sessions; setup: Setup },
  { password, ...owner }: Bootstrap,
): Promise<Established> {
  passwords.demandStrength(password)
  const password_hash = await passwords.hash(password)
  return store.tx(async (tx) => {
    await demandUnowned(tx)
    await setup.end(tx)
    const client = { ip: null, user_agent: null, client_name: "belfry admin" }
    return establish(tx, sessions, { ...owner, password_hash }, client)
  })
}

/**
 * A new password for somebody who lost his. Every session ends; with `keep_mfa: false` the second
 * factor goes too. Throws 404 `user_not_found`, 422 `weak_password`.
 */
export async function resetOwner(
  { store }: AdminParts,
  { email, password, keep_mfa }: { email: string; password: string; keep_mfa: boolean },
): Promise<users.UserRecord> {
  passwords.demandStrength(password)
  const password_hash = await passwords.hash(password)
  return change(store, email, "password.reset", async (tx, { id }) => {
    await passwords.set(tx, id, password_hash)
    await users.set(tx, id, { status: "active" })
    if (!keep_mfa) await clear(tx, id)
    await revokeAll(tx, id)
  })
}

/** A locked user is signed out everywhere and cannot sign in. Throws 409 for the last operator. */
export const lockUser = ({ store }: AdminParts, email: string) =>
  change(store, email, "user.locked", async (tx, { id, operator, status }) => {
    if (operator && status === "active") await users.demandOtherOperator(tx)
    await users.set(tx, id, { status: "locked" })
    await revokeAll(tx, id)
  })

export const unlockUser = ({ store }: AdminParts, email: string) =>
  change(store, email, "user.unlocked", async (tx, { id }) => {
    await users.set(tx, id, { status: "active" })
  })

/** Who runs the instance. Throws 409 `conflict` when nobody would. */
export const setOperator = ({ store }: AdminParts, email: string, operator: boolean) =>
  change(store, email, "user.operator_changed", async (tx, user) => {
    if (user.operator && !operator) await users.demandOtherOperator(tx)
    await users.set(tx, user.id, { operator })
  })

/** Everybody, oldest first. */
export async function listUsers({ store }: AdminParts): Promise<users.UserRecord[]> {
  const rows = await store.read.select().from(consoleUsers).orderBy(asc(consoleUsers.id))
  return rows.map(users.userRecord)
}

function change(
  store: Store,
  email: string,
  action: string,
  make: (tx: Tx, user: users.UserRow) => Promise<void>,
): Promise<users.UserRecord> {
  return store.tx(async (tx) => {
    const { id } =
      (await users.byEmail(tx, email)) ??
      fail("user_not_found", `There is no user with the email ${email}.`)
    const before = await users.hold(tx, id)
    await make(tx, before)
    const after = await users.find(tx, id)
    const shown = { before: statusOf(before), after: statusOf(after) }
    await recordForUser(tx, after, LOCAL, action, shown)
    return users.userRecord(after)
  })
}

const statusOf = (row: users.UserRow) => ({ ...users.userRecord(row), status: row.status })
