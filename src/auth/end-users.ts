import { and, eq } from "drizzle-orm"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import { comparable, isName } from "../lib/address"
import { fieldsOf } from "../lib/record-fields"
import { bumpAll } from "../store/counters"
import { rowById, rowForUpdate } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import type { AuthEnvironment } from "./environments"
import { UserRecord } from "./schemas"
import { memberships, users } from "./tables"

export type EndUserRow = typeof users.$inferSelect

/** What a new user begins with; everything else is empty. */
export type NewEndUser = Partial<
  Pick<
    EndUserRow,
    | "email"
    | "email_verified"
    | "phone_number"
    | "phone_verified"
    | "name"
    | "avatar_url"
    | "locale"
    | "metadata"
    | "app_metadata"
    | "status"
    | "password_hash"
  >
>

/** The form in which addresses compare; "" for a text that no database can search for, which no user has. */
export const emailKeyOf = (email: string): string => (isName(email) ? comparable(email) : "")

/**
 * A new user, a member of the Default organization. Undefined where the address or the number has one already. What
 * is told and counted of a new user is the caller's.
 */
export async function insertUser(
  tx: Tx,
  environment: AuthEnvironment,
  wanted: NewEndUser,
): Promise<EndUserRow | undefined> {
  const at = now()
  const { id: environment_id, name, project_id, application } = environment
  const row: EndUserRow = {
    id: newId(),
    ...{ project_id, application_id: application.id, environment_id, environment: name },
    ...{ email: null, email_verified: false, phone_number: null, phone_verified: false },
    ...{ name: null, avatar_url: null, locale: null, metadata: {}, app_metadata: {} },
    ...{ status: "active", status_reason: null, password_hash: null },
    ...{ is_anonymous: false, anonymous_device_id: null, subscriber_id: null },
    ...{ last_organization_id: null, first_activity_at: null, last_login_at: null },
    ...{ active_month: null, created_at: at, updated_at: at },
    ...wanted,
    email_key: wanted.email ? emailKeyOf(wanted.email) : null,
  }
  const made = await tx.insert(users).values(row).onConflictDoNothing().returning()
  if (made.length === 0) return undefined
  await countUsers(tx, environment, 1)
  const { default_organization_id: organization_id } = environment
  const member = { role: "member", permissions: [], created_at: at, updated_at: at }
  await tx.insert(memberships).values({
    ...{ id: newId(), project_id, environment_id, organization_id, user_id: row.id },
    ...member,
  })
  return row
}

/** Adds to the totals that users are counted in, in the transaction that adds or removes their rows. */
export const countUsers = (
  tx: Tx,
  { id, project_id: owner }: Pick<AuthEnvironment, "id" | "project_id">,
  by: number,
): Promise<void> =>
  bumpAll(tx, [
    { owner, name: "users", by },
    { owner, name: usersOf(id), by },
  ])

/** The counter of the users of an environment. */
export const usersOf = (environment_id: string) => `users.environment_id.${environment_id}`

const ofEnvironment = ({ id, project_id }: AuthEnvironment) =>
  and(eq(users.project_id, project_id), eq(users.environment_id, id))

/** The user of this address, in whatever status. */
export async function byEmail(
  db: Reader,
  environment: AuthEnvironment,
  email: string,
): Promise<EndUserRow | undefined> {
  const own = and(ofEnvironment(environment), eq(users.email_key, emailKeyOf(email)))
  const [row] = await db.select().from(users).where(own)
  return row
}

/** The user of this number, in whatever status. */
export async function byPhone(
  db: Reader,
  environment: AuthEnvironment,
  phone_number: string,
): Promise<EndUserRow | undefined> {
  const own = and(ofEnvironment(environment), eq(users.phone_number, phone_number))
  const [row] = await db.select().from(users).where(own)
  return row
}

/** Of any environment of the project. Throws 404 `user_not_found`. */
export const find = async (db: Reader, project_id: string, id: string): Promise<EndUserRow> =>
  (await rowById(db, users, id, eq(users.project_id, project_id))) ?? noUser()

/** As `find`, with the row locked until the transaction ends. */
export const findForUpdate = async (tx: Tx, project_id: string, id: string): Promise<EndUserRow> =>
  (await rowForUpdate(tx, users, id, eq(users.project_id, project_id))) ?? noUser()

export const noUser = (): never => fail("user_not_found", "There is no such user.")

/** Changes a row that the caller holds. */
export async function setUser(
  tx: Tx,
  user: EndUserRow,
  changes: Partial<EndUserRow>,
): Promise<EndUserRow> {
  const after = { ...user, ...changes, updated_at: now() }
  const own = and(eq(users.project_id, user.project_id), eq(users.id, user.id))
  await tx
    .update(users)
    .set({ ...changes, updated_at: after.updated_at })
    .where(own)
  return after
}

/** The User of the contract, as the user and apps see it. */
export const toResponse = (row: EndUserRow) => {
  const { app_metadata: _, ...shown } = toServerResponse(row)
  return shown
}

/** The same for keys and people of the console, who see `app_metadata`, too. */
export const toServerResponse = (row: EndUserRow) =>
  fieldsOf(UserRecord, { ...row, mfa_enabled: false, mfa_methods: [], identities: [] })
