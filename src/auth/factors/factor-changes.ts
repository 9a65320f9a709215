import type { Static } from "@sinclair/typebox"
import { and, asc, isNotNull } from "drizzle-orm"
import { fail } from "../../core/errors"
import { answerOnce } from "../../http/idempotency"
import type { Call } from "../../http/route"
import type { Caller } from "../../identity/caller"
import { maskedEmail, maskedPhone } from "../../lib/masked"
import type { Reader, Tx } from "../../store/store"
import type { AuthParts } from "../auth-parts"
import { endSessions } from "../end-sessions"
import { type EndUserRow, findForUpdate, toServerResponse } from "../end-users"
import { actorFacts, ownedForUpdate, recordUser } from "../managed-users"
import type { OwnSession } from "../own-user"
import type { EnrolledMethod } from "./enrolment"
import { backupCodesLeft } from "./factor-challenges"
import type { FactorProof, GivenFactor } from "./factor-proofs"
import { newBackupCodesFor, ofUser, removeAllMethods, removeMethod } from "./own-factors"
import type { OwnFactors } from "./schemas"
import { hasSteppedUp, refuseProof, requireFactor, requireMethods } from "./step-up"
import { userFactors, userPasskeys } from "./tables"

/** The second factors of a user, in the order in which they came. */
export async function factorsOf(db: Reader, user: EndUserRow): Promise<Static<typeof OwnFactors>> {
  const known = [...(await codesOf(db, user)), ...(await passkeysOf(db, user))]
  const methods = user.mfa_methods.flatMap((type) => known.find((one) => one.type === type) ?? [])
  const enabled = methods.length > 0
  return { enabled, methods, backup_codes_left: await backupCodesLeft(db, user) }
}

type KnownFactor = Static<typeof OwnFactors>["methods"][number]

async function codesOf(db: Reader, user: EndUserRow): Promise<KnownFactor[]> {
  const own = and(ofUser(userFactors, user), isNotNull(userFactors.verified_at))
  const rows = await db.select().from(userFactors).where(own)
  const mailed = user.email && maskedEmail(user.email)
  return rows.map((row) => ({
    type: row.method,
    verified_at: row.verified_at ?? "",
    hint: row.method === "email" ? mailed : row.phone_number && maskedPhone(row.phone_number),
  }))
}

/** The first one stands for all. */
async function passkeysOf(db: Reader, user: EndUserRow): Promise<KnownFactor[]> {
  const rows = db.select().from(userPasskeys).where(ofUser(userPasskeys, user))
  const first = await rows.orderBy(asc(userPasskeys.id)).limit(1)
  return first.map((row) => ({ type: "passkey", verified_at: row.created_at, hint: row.name }))
}

type GivenCode = Pick<GivenFactor, "totp_code" | "backup_code">

/**
 * Turns a method of the signed-in user off. Throws 400 `mfa_not_enabled`, 401 `invalid_verification`,
 * `invalid_backup_code`, and 429 for guessing.
 */
export async function disable(
  parts: AuthParts,
  own: OwnSession,
  { method = usualOf(own.user), ...given }: GivenCode & { method?: EnrolledMethod },
  ip: string,
) {
  requireMethods(own.user)
  const proof = await requireRecent(parts, own, given)
  const changed = await parts.store.tx(async (tx) => {
    const user = await settled(tx, own, proof)
    if (!method || !user.mfa_methods.includes(method))
      return fail("mfa_not_enabled", "The user has no such method.")
    const facts = { ip_address: ip, session_id: own.session_id }
    return removeMethod(tx, own.environment, user, method, facts)
  })
  return { enabled: changed.mfa_methods.length > 0, methods: changed.mfa_methods }
}

/** As enrolment, the authenticator app where the user has one; passkeys are deleted one by one. */
const usualOf = ({ mfa_methods }: EndUserRow): EnrolledMethod | undefined => {
  const typed = mfa_methods.filter((one) => one !== "passkey")
  return typed.find((one) => one === "totp") ?? typed[0]
}

/** Ten new backup codes for the signed-in user. Throws as `disable`. */
export async function renewBackupCodes(
  parts: AuthParts,
  own: OwnSession,
  given: GivenCode,
  { claim }: Pick<Call, "claim">,
) {
  requireMethods(own.user)
  const proof = await requireRecent(parts, own, given)
  return answerOnce(parts.store, claim, async (tx) => {
    const user = await settled(tx, own, proof)
    requireMethods(user)
    return { backup_codes: await newBackupCodesFor(tx, parts.secrets, user) }
  })
}

/** Undefined within a step-up, which needs no code. */
async function requireRecent(
  parts: AuthParts,
  own: OwnSession,
  given: GivenCode,
): Promise<FactorProof | undefined> {
  const { totp_code, backup_code } = given
  if (totp_code !== undefined || backup_code !== undefined) return requireFactor(parts, own, given)
  if (await hasSteppedUp(parts.store.read, own.user, own.session_id)) return undefined
  return fail("invalid_verification", "The request needs a code, or a step-up before it.")
}

/** The locked user, with the proof used up. */
async function settled(
  tx: Tx,
  { environment, user: { id } }: OwnSession,
  proof: FactorProof | undefined,
): Promise<EndUserRow> {
  const user = await findForUpdate(tx, environment.project_id, id)
  if (!proof || (await proof.take(tx, user))) return user
  if (proof.method !== "backup_code") return refuseProof()
  return fail("invalid_backup_code", "This backup code is wrong, or it was used.")
}

/**
 * For somebody of the project: the user has no second factor and no passkey any more, and their sessions end. Throws
 * 400 `mfa_not_enabled`.
 */
export async function resetFactors(tx: Tx, caller: Caller, id: string) {
  const { environment, user } = await ownedForUpdate(tx, caller, id)
  requireMethods(user)
  const facts = actorFacts(caller)
  const changed = await removeAllMethods(tx, environment, user, facts)
  await endSessions(tx, environment, user, { ...facts, reason: "mfa_reset" })
  await recordUser(tx, caller, user, "mfa_reset", { before: { methods: user.mfa_methods } })
  return toServerResponse(changed)
}
