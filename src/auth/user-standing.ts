import { fail } from "../core/errors"
import { now } from "../core/time"
import type { Caller } from "../identity/caller"
import { fieldsOf } from "../lib/record-fields"
import { openSession } from "../sign-in/person-sessions"
import type { Tx } from "../store/store"
import { secondsOf } from "./access-tokens"
import type { AuthParts } from "./auth-parts"
import { endSessions } from "./end-sessions"
import { setUser, toServerResponse } from "./end-users"
import { isLockedOut, liftLockout } from "./guesses"
import { actorFacts, findOwned, ownedForUpdate, recordUser } from "./managed-users"
import { prepareNotice } from "./notices"
import { activeOf, organizationsOf } from "./own-organizations"
import { hashNext, setPassword } from "./own-password"
import { StartedSession } from "./schemas"
import { clientOf } from "./sign-in"
import { userSessions } from "./tables"
import { emitUser } from "./user-events"

/** Throws 409 `conflict` for a user that is suspended, or not active yet. Their sessions end. */
export async function suspend(tx: Tx, caller: Caller, id: string, reason: string | undefined) {
  const { environment, user } = await ownedForUpdate(tx, caller, id)
  if (user.status !== "active") refuseStatus(user.status)
  const after = await setUser(tx, user, { status: "suspended", status_reason: reason ?? null })
  await endSessions(tx, environment, user, { ...actorFacts(caller), reason: "user_suspended" })
  await recordUser(tx, caller, user, "suspended", { after: { reason } })
  return toServerResponse(after)
}

const refuseStatus = (status: string): never =>
  fail("conflict", `The user is ${status}.`, { reason: "status", status })

/** Also lifts a lockout. Throws 409 `conflict` for a user that is active and not locked out, or only invited. */
export async function activate(parts: AuthParts, caller: Caller, id: string) {
  const { store } = parts
  const known = await findOwned(store.read, caller, id)
  const is_locked = await isLockedOut(parts, known.environment, known.user)
  return store.tx(async (tx) => {
    const { environment, user } = await ownedForUpdate(tx, caller, id)
    if (user.status === "invited" || (user.status === "active" && !is_locked))
      refuseStatus(user.status)
    await liftLockout(tx, parts, environment, user)
    const after = await setUser(tx, user, { status: "active", status_reason: null })
    await recordUser(tx, caller, user, "activated")
    return toServerResponse(after)
  })
}

interface WantedPassword {
  password: string
  keep_sessions?: boolean
}

/** Throws 422 `weak_password`, `password_recently_used`, and 409 `conflict` for one that is only invited. */
export async function givePassword(
  parts: AuthParts,
  call: { caller: Caller; ip: string; request: Request },
  id: string,
  { password, keep_sessions = false }: WantedPassword,
): Promise<void> {
  const { store } = parts
  const { caller } = call
  const { environment, user: known } = await findOwned(store.read, caller, id)
  if (known.status === "invited") refuseStatus(known.status)
  const [password_hash, notice] = await Promise.all([
    hashNext(store.read, environment, known, password),
    prepareNotice(parts, environment, known, { type: "password_changed", client: clientOf(call) }),
  ])
  await store.tx(async (tx) => {
    const { user } = await ownedForUpdate(tx, caller, id)
    await setPassword(tx, environment, user, password_hash)
    const facts = actorFacts(caller)
    if (!keep_sessions)
      await endSessions(tx, environment, user, { ...facts, reason: "password_changed" })
    await emitUser(tx, environment, user, "user.password_changed", facts)
    await notice.accept(tx)
    await recordUser(tx, caller, user, "password_changed")
  })
}

interface WantedImpersonation {
  reason: string
  ttl_seconds?: number
}

const USUAL_SECONDS = 900

/**
 * Somebody of the project acts as the user: a session that nothing renews, and that is in every token, event and entry
 * as theirs. Throws 400 `user_inactive`.
 */
export async function impersonate(
  tx: Tx,
  parts: AuthParts,
  call: { caller: Caller; ip: string; request: Request },
  id: string,
  { reason, ttl_seconds = USUAL_SECONDS }: WantedImpersonation,
) {
  const { caller } = call
  const { environment, user } = await ownedForUpdate(tx, caller, id)
  if (user.status !== "active") fail("user_inactive", "This user is not active.")
  const organizations = await organizationsOf(tx, user, environment.default_organization_id)
  const { id: organization_id } = activeOf(organizations)
  const actor_id = caller.actor.id ?? ""
  const own = { user_id: user.id, project_id: user.project_id, environment_id: environment.id }
  const columns = { ...own, application_id: user.application_id, organization_id }
  const proof = { amr: [], auth_time: now(), lacks_factor: false, act: { id: actor_id, reason } }
  const started = { ...columns, ...clientOf(call), ...proof }
  const session = await openSession(tx, userSessions, started, ttl_seconds)
  const subject = { environment, user, session, organizations }
  const facts = { ...actorFacts(caller), session_id: session.id, organization_id, reason }
  await emitUser(tx, environment, user, "user.impersonated", facts)
  await recordUser(tx, caller, user, "impersonated", { after: { reason, session_id: session.id } })
  return {
    access_token: await parts.tokens.sign(tx, subject),
    expires_in: secondsOf(subject),
    session: fieldsOf(StartedSession, session),
  }
}
