import { and, desc, eq, gt, inArray, isNull } from "drizzle-orm"
import { fail, invalid } from "../core/errors"
import { now } from "../core/time"
import { type CodeVerdict, takeCode, tryCode } from "../sign-in/codes"
import * as passwords from "../sign-in/passwords"
import type { Tx } from "../store/store"
import type { AuthParts } from "./auth-parts"
import type { EndUserRow } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { countCheck, countProof, forgiveProof } from "./guesses"
import { type CodePurpose, userCodes } from "./tables"

type ProofParts = Pick<AuthParts, "store" | "secrets" | "throttle">
type OwnCode = typeof userCodes.$inferSelect

/** Settles what was proven, once, in the transaction of what it allows. */
type Settle = (tx: Tx) => Promise<void>

/**
 * A signed-in user proves it again: by the password, or by a code that was sent to prove it. Throws 422
 * `invalid_current_password`, `invalid_otp`, `otp_expired`, 400 `otp_max_attempts`, and 429 for guessing, which a
 * stolen session could be used for.
 */
export async function requireOwnProof(
  parts: ProofParts,
  environment: AuthEnvironment,
  user: EndUserRow,
  { password, code }: { password?: string | undefined; code?: string | undefined },
): Promise<Settle> {
  if (password !== undefined) return requireOwnPassword(parts, environment, user, password)
  if (code === undefined)
    throw invalid("password", "required", "The request needs the password or a code.")
  return (await requireOwnCode(parts, environment, user, "reauthenticate", code)).settle
}

/** Throws 422 `invalid_current_password`. */
export async function requireOwnPassword(
  parts: ProofParts,
  environment: AuthEnvironment,
  user: EndUserRow,
  password: string,
): Promise<Settle> {
  await countProof(parts, environment, user)
  if (!(await passwords.verify(password, user.password_hash)))
    fail("invalid_current_password", "This is not your current password.")
  return (tx) => forgiveProof(tx, parts, environment, user)
}

/** The newest code for this purpose, which `settle` uses up. Throws as `requireOwnProof`. */
export async function requireOwnCode(
  parts: ProofParts,
  environment: AuthEnvironment,
  user: EndUserRow,
  purpose: CodePurpose,
  code: string,
): Promise<{ found: OwnCode; settle: Settle }> {
  const { store, secrets } = parts
  const [place] = await store.read
    .select()
    .from(userCodes)
    .where(openCodesOf(environment, user, purpose))
    .orderBy(desc(userCodes.created_at))
    .limit(1)
  if (!place) return refuseCode("expired")
  await countCheck(parts, environment, place.identifier)
  const owner = { secrets, table: userCodes }
  const verdict = await tryCode(store, owner, eq(userCodes.id, place.id), code)
  if (verdict.verdict !== "right") return refuseCode(verdict.verdict)
  const { row } = verdict
  const settle = async (tx: Tx) => {
    if (!(await takeCode(tx, userCodes, row))) refuseCode("expired")
  }
  return { found: row, settle }
}

/** A code for an address that is no more the user's proves nothing, unless it is to become theirs. */
const openCodesOf = (
  { id, project_id }: AuthEnvironment,
  { id: user_id, email_key, phone_number }: EndUserRow,
  purpose: CodePurpose,
) => {
  const own = [email_key, phone_number].filter((one) => one !== null)
  return and(
    eq(userCodes.project_id, project_id),
    eq(userCodes.environment_id, id),
    eq(userCodes.user_id, user_id),
    eq(userCodes.purpose, purpose),
    purpose === "change_email" ? undefined : inArray(userCodes.identifier, own),
    isNull(userCodes.used_at),
    gt(userCodes.expires_at, now()),
  )
}

function refuseCode(verdict: Exclude<CodeVerdict<OwnCode>["verdict"], "right">): never {
  if (verdict === "wrong") fail("invalid_otp", "This code is wrong.")
  if (verdict === "used_up")
    fail("otp_max_attempts", "This code was tried too often. Ask for a new one.")
  return fail("otp_expired", "This code has expired or was used already. Ask for a new one.")
}
