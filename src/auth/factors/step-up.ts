import { and, eq } from "drizzle-orm"
import { fail, invalid } from "../../core/errors"
import { millis, millisFrom, now } from "../../core/time"
import type { Claim } from "../../http/idempotency"
import { keepAnswer } from "../../http/idempotency"
import { rowForUpdate } from "../../store/rows"
import type { Reader, Tx } from "../../store/store"
import { secondsOf, type UserSessionRow } from "../access-tokens"
import type { AuthParts } from "../auth-parts"
import { type EndUserRow, findForUpdate } from "../end-users"
import { countCheck } from "../guesses"
import { organizationsOf } from "../own-organizations"
import type { OwnSession } from "../own-user"
import { userSessions } from "../tables"
import { findSession } from "../user-sessions"
import { SECOND_FACTOR } from "./factor-challenges"
import { destinationOf, prepareFactorCode } from "./factor-codes"
import { type FactorProof, type GivenFactor, proveFactor, type SentMethod } from "./factor-proofs"
import { ofUser } from "./own-factors"

const STEP_UP_MILLISECONDS = 600_000

/** Whether the session proved a second factor again in the last ten minutes. */
export async function hasSteppedUp(
  db: Reader,
  user: EndUserRow,
  session_id: string,
): Promise<boolean> {
  const { stepped_up_at } = await findSession(db, user, session_id)
  return stepped_up_at !== null && millis() - millisFrom(stepped_up_at) < STEP_UP_MILLISECONDS
}

/** Throws 403 `mfa_required` for a user that has a second factor and has not just proven it. */
export async function requireStepUp(
  db: Reader,
  user: EndUserRow,
  session_id: string,
): Promise<void> {
  if (user.mfa_methods.length > 0 && !(await hasSteppedUp(db, user, session_id))) refuseUnproven()
}

/**
 * A user with a second factor adds another one only in a session that proved one: else a session without it could get
 * around it. Throws 403 `mfa_required`.
 */
export async function requireProvenSession(
  db: Reader,
  user: EndUserRow,
  session_id: string,
): Promise<void> {
  const { amr } = await findSession(db, user, session_id)
  if (user.mfa_methods.length > 0 && !amr.includes(SECOND_FACTOR)) refuseUnproven()
}

const refuseUnproven = () =>
  fail("mfa_required", "Prove your second factor with POST /v1/auth/mfa/step-up first.")

/** A second factor was proven in a session of a locked user: it lacks none any more. */
export async function noteFactor(
  tx: Tx,
  user: EndUserRow,
  session_id: string,
  { amr, ...more }: { amr: string[]; stepped_up_at?: string; auth_time?: string },
): Promise<UserSessionRow> {
  const own = ofUser(userSessions, user)
  const session = await rowForUpdate(tx, userSessions, session_id, own)
  if (!session) return fail("unauthorized", "This session is over.")
  const changes = { ...more, amr: [...new Set([...session.amr, ...amr])], lacks_factor: false }
  await tx
    .update(userSessions)
    .set(changes)
    .where(and(own, eq(userSessions.id, session.id)))
  return { ...session, ...changes }
}

/**
 * Proves a second factor again, for a token with a fresh `auth_time`. Throws 401 `invalid_verification`, 400
 * `mfa_not_enabled`, and 429 for guessing.
 */
export async function stepUp(parts: AuthParts, own: OwnSession, given: GivenFactor) {
  requireMethods(own.user)
  const proof = await requireFactor(parts, own, given)
  return parts.store.tx((tx) => finishStepUp(tx, parts, own, proof))
}

/** Throws 400 `mfa_not_enabled`. */
export function requireMethods({ mfa_methods }: EndUserRow): void {
  if (mfa_methods.length === 0) fail("mfa_not_enabled", "The user has no second factor.")
}

/** A factor of the signed-in user. Throws 401 `invalid_verification`, and 429 for guessing. */
export async function requireFactor(
  parts: AuthParts,
  { environment, user }: OwnSession,
  given: GivenFactor,
): Promise<FactorProof> {
  await countCheck(parts, environment, user.id)
  const proof = await proveFactor(parts, environment, user, given, "step_up")
  return proof === undefined || typeof proof === "string" ? refuseProof() : proof
}

export const refuseProof = () =>
  fail("invalid_verification", "This proof is wrong, has expired or was used.")

/** The session of the user has the factor from now on. */
export async function finishStepUp(
  tx: Tx,
  { tokens }: Pick<AuthParts, "tokens">,
  { environment, user: { id }, session_id }: OwnSession,
  proof: FactorProof,
) {
  const user = await findForUpdate(tx, environment.project_id, id)
  if (!(await proof.take(tx, user))) return refuseProof()
  const at = now()
  const proven = { amr: proof.amr, stepped_up_at: at, auth_time: at }
  const session = await noteFactor(tx, user, session_id, proven)
  const organizations = await organizationsOf(tx, user, session.organization_id)
  const subject = { environment, user, session, organizations }
  return { access_token: await tokens.sign(tx, subject), expires_in: secondsOf(subject) }
}

/** Sends the code that a step-up takes. */
export async function sendStepUpCode(
  parts: AuthParts,
  { environment, user }: OwnSession,
  asked: SentMethod | undefined,
  { ip, claim }: { ip: string; claim: Claim | undefined },
) {
  requireMethods(user)
  const method = asked ?? user.mfa_methods.find((one) => one === "sms" || one === "email")
  if (!method) throw invalid("totp_code", "required", "The request needs a code.")
  const to = await destinationOf(parts.store.read, user, method)
  if (!to) return fail("mfa_not_enabled", "The user has no such method.")
  const wanted = { method, to, purpose: "step_up" as const }
  const { data, accept } = await prepareFactorCode(parts, environment, user, wanted, ip)
  await parts.store.tx(async (tx) => {
    await accept(tx)
    await keepAnswer(tx, claim, { data })
  })
  return data
}
