import { and, eq, isNotNull, isNull, lt, or } from "drizzle-orm"
import type { Secrets } from "../../core/secrets"
import { takeCode, tryCode } from "../../sign-in/codes"
import { hashOfBackup, spendBackupCode, stepOf } from "../../sign-in/second-factors"
import type { Tx } from "../../store/store"
import type { AuthParts } from "../auth-parts"
import type { EndUserRow } from "../end-users"
import type { AuthEnvironment } from "../environments"
import { forgiveCheck } from "../guesses"
import { userCodes } from "../tables"
import { codeAt, codesOf } from "../user-codes"
import { type ChallengeMethod, SECOND_FACTOR } from "./factor-challenges"
import { ofUser } from "./own-factors"
import { userBackupCodes, userFactors } from "./tables"

/** A second factor that is right, unless it was used before: `take` decides. */
export interface FactorProof {
  method: ChallengeMethod
  /** What `amr` says of it (RFC 8176). */
  amr: string[]
  /** Uses it up in the transaction of what it allows. False where that happened before, and for a wrong backup code. */
  take(tx: Tx, user: EndUserRow): Promise<boolean>
}

/** The methods whose codes a message brings. */
export type SentMethod = "sms" | "email"

/** What somebody answers with. */
export interface GivenFactor {
  totp_code?: string | undefined
  backup_code?: string | undefined
  method?: SentMethod | undefined
  code?: string | undefined
}

/** Why an answer is no proof, as `mfa/verify` says it. */
export type FactorRefusal = "invalid_totp" | "invalid_backup_code" | "invalid_otp" | "otp_expired"

/** Why a proof of the method is none after all. */
export const refusalOf = (method: ChallengeMethod): FactorRefusal => {
  if (method === "totp") return "invalid_totp"
  return method === "backup_code" ? "invalid_backup_code" : "otp_expired"
}

type ProofParts = Pick<AuthParts, "store" | "secrets">

/**
 * Looks at an answer; the try was counted before, and `take` takes a right one back. A code that a message brought counts
 * for its purpose alone. Undefined for an answer that has no code.
 */
export async function proveFactor(
  parts: ProofParts & Pick<AuthParts, "throttle">,
  environment: AuthEnvironment,
  user: EndUserRow,
  given: GivenFactor,
  purpose: "mfa" | "step_up",
): Promise<FactorProof | FactorRefusal | undefined> {
  const proof = await proofOf(parts, environment, user, given, purpose)
  if (proof === undefined || typeof proof === "string") return proof
  const take = async (tx: Tx, same: EndUserRow) => {
    const is_right = await proof.take(tx, same)
    if (is_right) await forgiveCheck(tx, parts, environment, user.id)
    return is_right
  }
  return { ...proof, take }
}

async function proofOf(
  parts: ProofParts,
  environment: AuthEnvironment,
  user: EndUserRow,
  { totp_code, backup_code, method, code }: GivenFactor,
  purpose: "mfa" | "step_up",
): Promise<FactorProof | FactorRefusal | undefined> {
  if (totp_code !== undefined) return proveTotp(parts, user, totp_code)
  if (backup_code !== undefined) return backupProof(parts.secrets, user, backup_code)
  if (method === undefined || code === undefined) return undefined
  return proveSent(parts, environment, user, { method, code, purpose })
}

async function proveTotp(
  { store, secrets }: ProofParts,
  user: EndUserRow,
  code: string,
): Promise<FactorProof | FactorRefusal> {
  const { id, method, verified_at, last_step } = userFactors
  const own = and(ofUser(userFactors, user), eq(method, "totp"), isNotNull(verified_at))
  const [factor] = await store.read.select().from(userFactors).where(own)
  if (!factor?.secret) return "invalid_totp" // a secret may be lost with its key
  const step = await stepOf(secretOf(secrets, factor), code)
  if (step === undefined) return "invalid_totp"
  const fresh = and(own, eq(id, factor.id), or(isNull(last_step), lt(last_step, step)))
  const take = async (tx: Tx) =>
    (await tx.update(userFactors).set({ last_step: step }).where(fresh).returning()).length > 0
  return { method: "totp", amr: amrOf("totp"), take }
}

/** The secret of an authenticator app. */
export const secretOf = (
  secrets: Secrets,
  { id, secret }: Pick<typeof userFactors.$inferSelect, "id" | "secret">,
): string => secrets.open(secret ?? "", secretContext(id))

/** The context in which the secret of a factor is sealed. */
export const secretContext = (factor_id: string) => `user_factors:${factor_id}:secret`

function backupProof(secrets: Secrets, { id: user_id }: EndUserRow, code: string): FactorProof {
  const code_hash = hashOfBackup(secrets, user_id, code)
  const take = (tx: Tx) => spendBackupCode(tx, userBackupCodes, { user_id, code_hash })
  return { method: "backup_code", amr: amrOf("backup_code"), take }
}

export type FactorCodePurpose = "mfa" | "mfa_enroll" | "step_up"

/** A code that a message brought. */
export async function proveSent(
  { store, secrets }: ProofParts,
  environment: AuthEnvironment,
  user: EndUserRow,
  { method, code, purpose }: { method: SentMethod; code: string; purpose: FactorCodePurpose },
): Promise<FactorProof | FactorRefusal> {
  const place = codeAt(environment, { purpose, identifier: factorPlace(user, method) })
  const tried = await tryCode(store, codesOf(secrets), place, code)
  if (tried.verdict !== "right") return tried.verdict === "wrong" ? "invalid_otp" : "otp_expired"
  const take = async (tx: Tx, { mfa_methods }: EndUserRow) =>
    (purpose === "mfa_enroll" || mfa_methods.includes(method)) && takeCode(tx, userCodes, tried.row)
  return { method, amr: amrOf(method), take }
}

/** What `amr` says of the methods whose codes people type. */
export const amrOf = (method: ChallengeMethod): string[] =>
  method === "sms" ? ["otp", "sms", SECOND_FACTOR] : ["otp", SECOND_FACTOR]

/** Where the code of a user's factor waits: these belong to users, and not to addresses. */
export const factorPlace = ({ id }: Pick<EndUserRow, "id">, method: SentMethod) => `${id} ${method}`
