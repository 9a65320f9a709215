import { eq } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { ApiError, fail, invalid } from "../core/errors"
import { secondsFromNow } from "../core/time"
import { answerOnce, type Claim } from "../http/idempotency"
import type { Caller } from "../identity/caller"
import { enqueue } from "../jobs/jobs"
import { closeLinks } from "../sign-in/links"
import * as passwords from "../sign-in/passwords"
import type { Reader, Tx } from "../store/store"
import type { AuthParts } from "./auth-parts"
import { endSessions } from "./end-sessions"
import {
  byEmail,
  byPhone,
  type EndUserRow,
  emailKeyOf,
  find,
  findForUpdate,
  holdIdentifiers,
  type NewEndUser,
  noUser,
  setUser,
  toServerResponse,
} from "./end-users"
import { type AuthEnvironment, environmentById, isWithin } from "./environments"
import { leaveSubscriber, linkSubscriber } from "./linked-subscriber"
import { rememberPassword, rulesOf } from "./own-password"
import { removeUsers, usersDeleted } from "./removed-users"
import { createUser } from "./sign-in"
import { userIdentities } from "./social/tables"
import { userCodes, userLinks } from "./tables"
import { emitUser, type UserEventFacts } from "./user-events"
import type { WantedUser } from "./user-input"

/** A user, and where they are one. */
export interface OwnedUser {
  environment: AuthEnvironment
  user: EndUserRow
}

/** A user of the caller's project, or of its application where the credential binds one. Throws 404 `user_not_found`. */
export const findOwned = async (db: Reader, caller: Caller, id: string): Promise<OwnedUser> =>
  ownedBy(db, caller, await find(db, caller.project_id, id))

/** As `findOwned`, with the row locked until the transaction ends. */
export const ownedForUpdate = async (tx: Tx, caller: Caller, id: string): Promise<OwnedUser> =>
  ownedBy(tx, caller, await findForUpdate(tx, caller.project_id, id))

async function ownedBy(db: Reader, caller: Caller, user: EndUserRow) {
  const environment = await environmentById(db, user.environment_id)
  return environment && isWithin(caller, environment) ? { environment, user } : noUser()
}

/** What an event tells of the key or person that acts for the project. */
export const actorFacts = ({ actor, ip }: Caller): UserEventFacts => ({
  actor_id: actor.id,
  ip_address: ip,
})

/** Writes down what somebody of the project did to a user. */
export function recordUser(
  tx: Tx,
  caller: Caller,
  user: EndUserRow,
  verb: string,
  change: audit.AuditChange = {},
): Promise<void> {
  const { account_id, project_id } = caller
  const target = { type: "user", id: user.id }
  return audit.record(tx, caller, {
    account_id,
    project_id,
    action: `user.${verb}`,
    target,
    ...change,
  })
}

/** What another user has already. */
interface Reached {
  email?: string | null
  phone_number?: string | null
}

/** The 409 `conflict` of a user whose address or number another one has; it names the field. */
export async function takenBy(
  db: Reader,
  environment: AuthEnvironment,
  { email, phone_number }: Reached,
): Promise<ApiError> {
  const named = email ? await byEmail(db, environment, email) : undefined
  const other = named ?? (phone_number ? await byPhone(db, environment, phone_number) : undefined)
  const [field, what] = named ? ["email", "email address"] : ["phone_number", "phone number"]
  const known = other && { id: other.id, status: other.status }
  const details = { field, reason: `${field}_taken`, ...known }
  return new ApiError("conflict", `A user has this ${what} already.`, details)
}

/** Throws it. */
export const refuseSame = async (
  db: Reader,
  environment: AuthEnvironment,
  reached: Reached,
): Promise<never> => {
  throw await takenBy(db, environment, reached)
}

/** Throws 409 `conflict`, and 422 `weak_password`. */
export async function create(
  { store }: AuthParts,
  environment: AuthEnvironment,
  caller: Caller,
  { password, ...given }: WantedUser,
  claim: Claim | undefined,
) {
  const password_hash =
    password === undefined ? null : await passwords.hashNew(password, rulesOf(environment))
  return answerOnce(store, claim, async (tx) => {
    const user = await createUser(tx, environment, { ...given, password_hash })
    if (!user) return refuseSame(tx, environment, given)
    if (password_hash !== null) await rememberPassword(tx, environment, user, password_hash)
    await emitUser(tx, environment, user, "user.created", actorFacts(caller))
    const shown = toServerResponse(user)
    await recordUser(tx, caller, user, "created", { after: shown })
    return shown
  })
}

/** Changes a user. A new address or number is unproven, unless the change says otherwise. Throws 409 `conflict`. */
export async function change(tx: Tx, caller: Caller, id: string, given: NewEndUser) {
  const { environment, user: before } = await ownedForUpdate(tx, caller, id)
  const wanted = settled(before, given)
  const { email, phone_number } = { ...before, ...wanted }
  if (email === null && phone_number === null && !before.is_anonymous)
    throw invalid("email", "required", "A user keeps an `email` or a `phone_number`.")
  const has_new_email = email !== before.email
  if (has_new_email && before.status === "invited") refuseInvited(before)
  const is_moved = has_new_email || phone_number !== before.phone_number
  if (is_moved) await holdIdentifiers(tx, environment)
  await requireFree(tx, environment, before, wanted)
  if (is_moved) await forgetCodes(tx, before)
  const after = await linkSubscriber(tx, await setUser(tx, before, wanted))
  const facts = actorFacts(caller)
  if (isProven("email_verified", "email", before, after))
    await emitUser(tx, environment, after, "user.email_verified", facts)
  if (isProven("phone_verified", "phone_number", before, after))
    await emitUser(tx, environment, after, "user.phone_verified", facts)
  const shown = toServerResponse(after)
  await recordUser(tx, caller, after, "updated", { before: toServerResponse(before), after: shown })
  return shown
}

/** The change with what follows from it. Nothing that is not there is verified. */
function settled(before: EndUserRow, given: NewEndUser): NewEndUser {
  const { email = before.email, phone_number = before.phone_number } = given
  const stays_email = email !== null && emailKeyOf(email) === before.email_key
  const stays_phone = phone_number === before.phone_number
  const { email_verified = stays_email && before.email_verified } = given
  const { phone_verified = stays_phone && before.phone_verified } = given
  return {
    ...given,
    email_verified: email !== null && email_verified,
    phone_verified: phone_number !== null && phone_verified,
  }
}

const isProven = (
  flag: "email_verified" | "phone_verified",
  name: "email" | "phone_number",
  before: EndUserRow,
  after: EndUserRow,
) => after[flag] && !(before[flag] && before[name] === after[name])

const refuseInvited = ({ id }: EndUserRow): never =>
  fail(
    "conflict",
    "The invitation is for this address. Delete the user, and invite the other address.",
    {
      reason: "invited",
      id,
    },
  )

async function requireFree(
  db: Reader,
  environment: AuthEnvironment,
  { id, email_key, phone_number: number }: EndUserRow,
  { email, phone_number }: NewEndUser,
): Promise<void> {
  if (email && emailKeyOf(email) !== email_key) {
    const named = await byEmail(db, environment, email)
    if (named && named.id !== id) await refuseSame(db, environment, { email })
  }
  if (phone_number && phone_number !== number) {
    const reached = await byPhone(db, environment, phone_number)
    if (reached && reached.id !== id) await refuseSame(db, environment, { phone_number })
  }
}

/** Codes and links that went to a former address or number open nothing any more. */
async function forgetCodes(tx: Tx, { id }: EndUserRow): Promise<void> {
  await closeLinks(tx, userLinks, eq(userLinks.user_id, id))
  await tx.delete(userCodes).where(eq(userCodes.user_id, id))
}

/**
 * Deletes a locked user: the address, number and sessions are free and over from this transaction on. `removeUsers`
 * removes the rows, and a job does so where the server ends before.
 */
export async function remove(
  tx: Tx,
  { environment, user }: OwnedUser,
  facts: UserEventFacts,
): Promise<void> {
  await endSessions(tx, environment, user, { ...facts, reason: "user_deleted" })
  await forgetCodes(tx, user)
  await leaveSubscriber(tx, user)
  await emitUser(tx, environment, user, "user.deleted", facts)
  await setUser(tx, user, {
    ...{ status: "deleted" as const, status_reason: null, password_hash: null },
    ...{ email: null, email_verified: false, phone_number: null, phone_verified: false },
    ...{ name: null, avatar_url: null, anonymous_device_id: null, subscriber_id: null },
    ...{ metadata: {}, app_metadata: {}, identities: [] },
  })
  // Their next sign-in makes a new user, whatever is left of this one.
  await tx.delete(userIdentities).where(eq(userIdentities.user_id, user.id))
  const run_at = secondsFromNow(LATER_SECONDS)
  const { id, project_id } = user
  await enqueue(tx, usersDeleted, { payload: { ids: [id] }, project_id, run_at })
}

/** The request itself removes the rows before. */
const LATER_SECONDS = 60

/** For somebody of the project. */
export async function removeFor({ store }: AuthParts, caller: Caller, id: string): Promise<void> {
  await store.tx(async (tx) => {
    const owned = await ownedForUpdate(tx, caller, id)
    await remove(tx, owned, actorFacts(caller))
    await recordUser(tx, caller, owned.user, "deleted", { before: toServerResponse(owned.user) })
  })
  await removeUsers(store, [id])
}
