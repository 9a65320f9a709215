import type { Static } from "@sinclair/typebox"
import { and, desc, eq, gt, isNull } from "drizzle-orm"
import { fail, invalid } from "../../core/errors"
import { newId } from "../../core/ids"
import { now, secondsFromNow } from "../../core/time"
import { keepAnswer } from "../../http/idempotency"
import type { Call } from "../../http/route"
import type { Caller } from "../../identity/caller"
import { isPhone, NOT_A_PHONE } from "../../lib/phone"
import { newBackupCodes, newTotp, stepOf } from "../../sign-in/second-factors"
import type { Tx } from "../../store/store"
import type { AuthParts } from "../auth-parts"
import { type EndUserRow, findForUpdate } from "../end-users"
import type { AuthEnvironment } from "../environments"
import { countCheck, forgiveCheck } from "../guesses"
import { actorFacts, type OwnedUser, recordUser } from "../managed-users"
import { prepareFactorCode } from "./factor-codes"
import { amrOf, type FactorProof, proveSent, secretContext, secretOf } from "./factor-proofs"
import { addMethod, hashesOf, ofUser, takeBackupCodes } from "./own-factors"
import type { BegunEnrolment, Enrolment, FactorOn } from "./schemas"
import { noteFactor, requireProvenSession } from "./step-up"
import { userFactors } from "./tables"

const WAITS_SECONDS = 900

type FactorRow = typeof userFactors.$inferSelect

/** The methods that people enrol with a code. */
export type EnrolledMethod = FactorRow["method"]

interface WantedFactor {
  method: EnrolledMethod
  phone_number?: string | undefined
}

/** The signed-in user with their session, or the one that a key names. */
export type EnrollingUser = OwnedUser & { session_id?: string }

type EnrolCall = Pick<Call, "caller" | "ip" | "claim">

/**
 * Begins with a second factor. Nothing is asked for at sign-in before its first code is verified, within 15 minutes.
 * The backup codes become valid then, and take the place of those that the user has. Throws 403 `forbidden` where the
 * environment has the method off, 409 `mfa_already_enabled`, and what the send of a code throws.
 */
export async function enroll(
  parts: AuthParts,
  enrolling: EnrollingUser,
  { method, phone_number }: WantedFactor,
  call: EnrolCall,
): Promise<{ data: Static<typeof Enrolment>; meta: { message: string } }> {
  const { environment, user, session_id } = enrolling
  requireOffered(environment, method, call.caller)
  requireFree(user, method)
  if (session_id !== undefined) await requireProvenSession(parts.store.read, user, session_id)
  const backup_codes = newBackupCodes()
  const begun = await begin(parts, enrolling, { method, phone_number }, call.ip)
  const data = { ...begun.shown, backup_codes }
  const meta = { message: MESSAGES[method] }
  await parts.store.tx(async (tx) => {
    const same = await findForUpdate(tx, environment.project_id, user.id)
    requireFree(same, method)
    const mine = and(ofUser(userFactors, same), eq(userFactors.method, method))
    await tx.delete(userFactors).where(mine)
    await tx.insert(userFactors).values({
      ...{ id: begun.id, project_id: same.project_id, user_id: same.id, method },
      ...{ secret: null, phone_number: null, ...begun.row, last_step: null, verified_at: null },
      ...{ code_hashes: hashesOf(parts.secrets, same, backup_codes), created_at: now() },
    })
    await begun.accept?.(tx)
    await keepAnswer(tx, call.claim, { data, meta })
  })
  return { data, meta }
}

const THEN = "Then send its code to POST /v1/auth/mfa/verify-enrollment. Keep the backup codes."

const MESSAGES: Record<EnrolledMethod, string> = {
  totp: `Scan the picture with an authenticator app. ${THEN}`,
  sms: `A code is on its way to the phone. ${THEN}`,
  email: `A code is on its way to the mailbox. ${THEN}`,
}

/** An organization may demand what the policy does not ask for. Throws 403 `forbidden` with the reason `method_off`. */
function requireOffered(
  { settings: { mfa } }: AuthEnvironment,
  method: EnrolledMethod,
  { end_user }: Caller,
): void {
  const is_asked_for = mfa.policy !== "off" || end_user?.lacks_factor
  if (is_asked_for && mfa.methods.includes(method)) return
  const message = `The second factor ${method} is off in this environment.`
  fail("forbidden", message, { reason: "method_off", method })
}

function requireFree({ status, mfa_methods }: EndUserRow, method: EnrolledMethod): void {
  if (status !== "active") fail("user_inactive", "This user is not active.")
  if (mfa_methods.includes(method))
    fail("mfa_already_enabled", "The user has this method already. Turn it off first.")
}

interface Begun {
  id: string
  shown: BegunEnrolment
  row: Partial<FactorRow>
  accept?: (tx: Tx) => Promise<unknown>
}

async function begin(
  parts: AuthParts,
  { environment, user }: OwnedUser,
  { method, phone_number }: WantedFactor,
  ip: string,
): Promise<Begun> {
  const id = newId()
  if (method === "totp") {
    const label = user.email ?? user.phone_number ?? user.id
    const shown = newTotp({ issuer: environment.application.name, label })
    const secret = parts.secrets.seal(shown.secret, secretContext(id))
    return { id, shown: { method, ...shown }, row: { secret } }
  }
  const to = method === "sms" ? numberOf(user, phone_number) : addressOf(user)
  const wanted = { method, to, purpose: "mfa_enroll" as const }
  const { data, accept } = await prepareFactorCode(parts, environment, user, wanted, ip)
  const { sent, destination, expires_in } = data
  const row = method === "sms" ? { phone_number: to } : {}
  return { id, shown: { method, sent, destination, expires_in }, row, accept }
}

const addressOf = ({ email }: EndUserRow): string =>
  email ?? fail("email_required", "The user has no email address.")

function numberOf({ phone_number }: EndUserRow, asked: string | undefined): string {
  const number = asked ?? phone_number
  if (!number) throw invalid("phone_number", "required", "The request needs a phone number.")
  return isPhone(number) ? number : fail("invalid_phone_number", NOT_A_PHONE)
}

/**
 * The first code of an enrolment was right: the method is on, its backup codes are valid, and the session that
 * verified it has a second factor. Without a method the newest enrolment counts. Throws 400 `no_pending_enrollment`,
 * `invalid_code`, 403 `mfa_required` where the user got a method elsewhere meanwhile, and 429 for guessing.
 */
export async function verifyEnrollment(
  parts: AuthParts,
  { environment, user, session_id }: EnrollingUser,
  { code, method }: { code: string; method?: EnrolledMethod | undefined },
  { caller, ip }: EnrolCall,
): Promise<Static<typeof FactorOn>> {
  const { store } = parts
  const waiting = await waitingOf(parts, user, method)
  await countCheck(parts, environment, user.id)
  const proof = await proveFirst(parts, environment, user, waiting, code)
  return store.tx(async (tx) => {
    const same = await findForUpdate(tx, environment.project_id, user.id)
    requireFree(same, waiting.method)
    if (session_id) await requireProvenSession(tx, same, session_id)
    if (!(await proof.take(tx, same))) return refuseFirst()
    await forgiveCheck(tx, parts, environment, user.id)
    await markVerified(tx, same, waiting.id, proof.step)
    await takeBackupCodes(tx, same, waiting.code_hashes)
    const facts = session_id ? { ip_address: ip, session_id } : actorFacts(caller)
    const changed = await addMethod(tx, environment, same, waiting.method, facts)
    if (session_id) await noteFactor(tx, same, session_id, { amr: amrOf(waiting.method) })
    else await recordUser(tx, caller, same, "mfa_enabled", { after: { method: waiting.method } })
    const mfa_enabled_at = changed.mfa_enabled_at ?? now()
    return { enabled: true as const, method: waiting.method, mfa_enabled_at }
  })
}

async function waitingOf(
  { store }: Pick<AuthParts, "store">,
  user: EndUserRow,
  method: EnrolledMethod | undefined,
): Promise<FactorRow> {
  const { verified_at, created_at } = userFactors
  const young = and(isNull(verified_at), gt(created_at, secondsFromNow(-WAITS_SECONDS)))
  const wanted = method && eq(userFactors.method, method)
  const [found] = await store.read
    .select()
    .from(userFactors)
    .where(and(ofUser(userFactors, user), young, wanted))
    .orderBy(desc(created_at))
    .limit(1)
  return found ?? noneWaits()
}

const noneWaits = () =>
  fail(
    "no_pending_enrollment",
    "No second factor waits for its first code. Begin with POST /v1/auth/mfa/enroll.",
  )

/** Throws 400 `invalid_code`. */
async function proveFirst(
  parts: AuthParts,
  environment: AuthEnvironment,
  user: EndUserRow,
  waiting: FactorRow,
  code: string,
): Promise<{ step: number | null; take: FactorProof["take"] }> {
  const { method } = waiting
  if (method === "totp") {
    const step = await stepOf(secretOf(parts.secrets, waiting), code)
    return step === undefined ? refuseFirst() : { step, take: async () => true }
  }
  const typed = { method, code, purpose: "mfa_enroll" as const }
  const proof = await proveSent(parts, environment, user, typed)
  return typeof proof === "string" ? refuseFirst() : { step: null, take: proof.take }
}

const refuseFirst = () => fail("invalid_code", "This code is wrong or has expired.")

/** Another enrolment may have begun meanwhile, or this one ended: the code was not for that. */
async function markVerified(tx: Tx, user: EndUserRow, id: string, last_step: number | null) {
  const change = { verified_at: now(), last_step, code_hashes: [] }
  const mine = and(ofUser(userFactors, user), eq(userFactors.id, id))
  const open = and(mine, isNull(userFactors.verified_at))
  const done = await tx.update(userFactors).set(change).where(open).returning()
  if (done.length === 0) noneWaits()
}
