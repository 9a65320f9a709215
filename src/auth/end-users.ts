import { and, eq, ne } from "drizzle-orm"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import { comparable, isName } from "../lib/address"
import { fieldsOf } from "../lib/record-fields"
import { searchable } from "../lib/text"
import { type Bump, bumpAll } from "../store/counters"
import { rowById, rowForUpdate } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import type { AuthEnvironment } from "./environments"
import { memberCounts } from "./organization-rows"
import { memberships } from "./organizations/tables"
import { UserRecord } from "./schemas"
import { environments, type UserStatus, users } from "./tables"

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
    | "is_anonymous"
    | "anonymous_device_id"
  >
>

/** The form in which addresses compare; "" for a text that no database can search for, which no user has. */
export const emailKeyOf = (email: string): string => (isName(email) ? comparable(email) : "")

/** What follows from other columns. */
export const derived = ({ email, phone_number, name }: DerivedFrom) => ({
  email_key: email ? emailKeyOf(email) : null,
  search_key: searchable([email, phone_number, name].filter(Boolean).join("\n")),
})

type DerivedFrom = Pick<EndUserRow, "email" | "phone_number" | "name">

/** The totals of a user: of the project, of the environment, and of the environment's users of this status. */
export const countsOf = (row: CountedUser, by: 1 | -1): Bump[] =>
  ["users", usersOf(row.environment_id), usersOf(row.environment_id, row.status)].map((name) => ({
    owner: row.project_id,
    name,
    by,
  }))

type CountedUser = Pick<EndUserRow, "project_id" | "environment_id" | "status">

/** The counter of an environment's users, or of those of one status. */
export const usersOf = (environment_id: string, status?: UserStatus): string =>
  status === undefined
    ? `users.environment_id.${environment_id}`
    : `users.environment_id+status.${environment_id}+${status}`

/**
 * A new user, a member of the Default organization. Undefined where the address, the number or the device has one
 * already. What is told and counted of a new user is the caller's.
 */
export async function insertUser(
  tx: Tx,
  environment: AuthEnvironment,
  wanted: NewEndUser,
): Promise<EndUserRow | undefined> {
  const row = newUser(environment, wanted)
  const made = await tx.insert(users).values(row).onConflictDoNothing().returning()
  if (made.length === 0) return undefined
  const member = defaultMembership(environment, row)
  await bumpAll(tx, [...countsOf(row, 1), ...memberCounts(member, 1)])
  await tx.insert(memberships).values(member)
  return row
}

/** The row of a new user. */
export function newUser(environment: AuthEnvironment, wanted: NewEndUser): EndUserRow {
  const at = now()
  const { id: environment_id, name, project_id, application } = environment
  const row = {
    id: newId(),
    ...{ project_id, application_id: application.id, environment_id, environment: name },
    ...{ email: null, email_verified: false, phone_number: null, phone_verified: false },
    ...{ name: null, avatar_url: null, locale: null, metadata: {}, app_metadata: {} },
    ...{ status: "active", status_reason: null, password_hash: null },
    ...{ is_anonymous: false, anonymous_device_id: null, subscriber_id: null },
    ...{ mfa_methods: [], mfa_enabled_at: null, identities: [] },
    ...{ last_organization_id: null, first_activity_at: null, last_login_at: null },
    ...{ active_month: null, created_at: at, updated_at: at },
    ...wanted,
  } satisfies Omit<EndUserRow, "email_key" | "search_key">
  return { ...row, ...derived(row) }
}

/** Every user is a member of the Default organization. */
export const defaultMembership = (
  { project_id, default_organization_id: organization_id }: AuthEnvironment,
  { id: user_id, environment_id, created_at }: EndUserRow,
): typeof memberships.$inferInsert => ({
  ...{ id: newId(), project_id, environment_id, organization_id, user_id },
  ...{ role: "member", permissions: [], created_at, updated_at: created_at },
})

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

/** The anonymous user of this device, in whatever status. */
export async function byDevice(
  db: Reader,
  environment: AuthEnvironment,
  device_id: string,
): Promise<EndUserRow | undefined> {
  const own = and(ofEnvironment(environment), eq(users.anonymous_device_id, device_id))
  const [row] = await db.select().from(users).where(own)
  return row
}

/** Of any environment of the project. Throws 404 `user_not_found`, also for a deleted one, whose rows are going. */
export const find = async (db: Reader, project_id: string, id: string): Promise<EndUserRow> =>
  (await rowById(db, users, id, isOf(project_id))) ?? noUser()

/** As `find`, with the row locked until the transaction ends. */
export const findForUpdate = async (tx: Tx, project_id: string, id: string): Promise<EndUserRow> =>
  (await rowForUpdate(tx, users, id, isOf(project_id))) ?? noUser()

const isOf = (project_id: string) =>
  and(eq(users.project_id, project_id), ne(users.status, "deleted"))

export const noUser = (): never => fail("user_not_found", "There is no such user.")

/** Users of an environment take addresses and numbers one at a time, so that no two take the same one at once. */
export const holdIdentifiers = (tx: Tx, { id, project_id }: AuthEnvironment) =>
  rowForUpdate(tx, environments, id, eq(environments.project_id, project_id))

/** Changes a row that the caller holds. */
export async function setUser(
  tx: Tx,
  user: EndUserRow,
  changes: Partial<Omit<EndUserRow, "email_key" | "search_key">>,
): Promise<EndUserRow> {
  const wanted = { ...user, ...changes, updated_at: now() }
  const after = { ...wanted, ...derived(wanted) }
  const { updated_at, email_key, search_key } = after
  const own = and(eq(users.project_id, user.project_id), eq(users.id, user.id))
  await tx
    .update(users)
    .set({ ...changes, updated_at, email_key, search_key })
    .where(own)
  if (after.status !== user.status)
    await bumpAll(tx, [...countsOf(user, -1), ...countsOf(after, 1)])
  return after
}

/** The User of the contract, as the user and apps see it. */
export const toResponse = (row: EndUserRow) => {
  const { app_metadata: _, ...shown } = toServerResponse(row)
  return shown
}

/** The same for keys and people of the console: they see `app_metadata`, too. */
export const toServerResponse = (row: EndUserRow) =>
  fieldsOf(UserRecord, { ...row, mfa_enabled: row.mfa_methods.length > 0 })
