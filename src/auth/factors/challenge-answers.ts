import { eq } from "drizzle-orm"
import { fail, invalid } from "../../core/errors"
import { keepAnswer } from "../../http/idempotency"
import type { Call } from "../../http/route"
import { closeChallenge } from "../../sign-in/challenges"
import { hashOfToken } from "../../sign-in/tokens"
import { rowById, rowForUpdate } from "../../store/rows"
import type { Tx } from "../../store/store"
import type { AuthParts } from "../auth-parts"
import type { AuthEnvironment } from "../environments"
import type { AuthResultRecord } from "../schemas"
import { startSignedIn, type UserClient } from "../sign-in"
import { users } from "../tables"
import {
  backupCodesLeft,
  type FactorChallenge,
  noChallenge,
  openChallenge,
  tryFactorChallenge,
} from "./factor-challenges"
import { destinationOf, prepareFactorCode, WAY_OF } from "./factor-codes"
import {
  type FactorProof,
  type FactorRefusal,
  type GivenFactor,
  proveFactor,
  refusalOf,
  type SentMethod,
} from "./factor-proofs"
import { userChallenges } from "./tables"

interface Answered {
  proof: FactorProof
  client: UserClient
  /** Throws the refusal of a proof that was used before. */
  refuse: (refusal: FactorRefusal) => never
}

/**
 * The second factor of a sign-in was right: the session begins. Of answers side by side one gets in. Throws 401
 * `invalid_mfa` for the others, 400 `user_inactive` for a user that was suspended meanwhile, and what `refuse` throws.
 */
export async function answerChallenge(
  tx: Tx,
  parts: AuthParts,
  environment: AuthEnvironment,
  { user_id, token_hash, provider, amr, organization_id }: FactorChallenge,
  { proof, client, refuse }: Answered,
): Promise<AuthResultRecord> {
  const user = await rowForUpdate(tx, users, user_id, ofProject(environment))
  if (user?.status !== "active") return fail("user_inactive", "This user is not active.")
  if (!(await closeChallenge(tx, userChallenges, token_hash))) return noChallenge()
  if (!(await proof.take(tx, user))) refuse(refusalOf(proof.method))
  return startSignedIn(tx, parts, {
    ...{ environment, user, provider, client },
    amr: [...new Set([...amr, ...proof.amr])],
    mfa_method: proof.method,
    organization_id: organization_id ?? undefined,
  })
}

const ofProject = ({ project_id }: AuthEnvironment) => eq(users.project_id, project_id)

/**
 * Signs in with a second factor. Throws 401 `invalid_mfa`, `invalid_totp`, `invalid_backup_code`, 422 `invalid_otp`,
 * `otp_expired`, and 429 for guessing.
 */
export async function verify(
  parts: AuthParts,
  environment: AuthEnvironment,
  { challenge_token, ...given }: GivenFactor & { challenge_token: string },
  client: UserClient,
  refuse: Answered["refuse"] = refuseAnswer,
): Promise<AuthResultRecord> {
  const { totp_code, backup_code, method, code } = given
  if (!(totp_code ?? backup_code ?? (method && code)))
    throw invalid("totp_code", "required", "The request needs a code.")
  const challenge = await tryFactorChallenge(parts, environment, challenge_token)
  const user = await personOf(parts, environment, challenge)
  const proof = await proveFactor(parts, environment, user, given, "mfa")
  if (proof === undefined || typeof proof === "string") return refuse(proof ?? "invalid_otp")
  return parts.store.tx((tx) =>
    answerChallenge(tx, parts, environment, challenge, { proof, client, refuse }),
  )
}

/** The same for a backup code, with how many are left. Throws 422 `invalid_recovery_code`. */
export async function recover(
  parts: AuthParts,
  environment: AuthEnvironment,
  given: { challenge_token: string; backup_code: string },
  client: UserClient,
) {
  const result = await verify(parts, environment, given, client, () =>
    fail("invalid_recovery_code", "This backup code is wrong, or it was used."),
  )
  const user = { id: result.user.id, project_id: environment.project_id }
  return { ...result, backup_codes_left: await backupCodesLeft(parts.store.read, user) }
}

const personOf = async (
  { store }: Pick<AuthParts, "store">,
  environment: AuthEnvironment,
  { user_id }: FactorChallenge,
) => (await rowById(store.read, users, user_id, ofProject(environment))) ?? noChallenge()

const refuseAnswer = (refusal: FactorRefusal): never => fail(refusal, REFUSALS[refusal])

const REFUSALS: Record<FactorRefusal, string> = {
  invalid_totp: "This code is wrong, or it was used. Wait for the next one.",
  invalid_backup_code: "This backup code is wrong, or it was used.",
  invalid_otp: "This code is wrong.",
  otp_expired: "There is no code to try: it has expired or was used. Ask for a new one.",
}

/** Sends a code that answers the challenge. A text is waited for, as `phone/send` does. */
export async function sendChallengeCode(
  parts: AuthParts,
  environment: AuthEnvironment,
  { challenge_token, method }: { challenge_token: string; method: SentMethod },
  { ip, claim }: Pick<Call, "ip" | "claim">,
) {
  const { store } = parts
  const challenge = await openChallenge(store.read, environment, hashOfToken(challenge_token))
  const user = await personOf(parts, environment, challenge)
  const to = await destinationOf(store.read, user, method)
  if (!to) return fail("invalid_mfa", "The user has no such method.")
  const wanted = { method, to, purpose: "mfa" as const }
  const { data, accept } = await prepareFactorCode(parts, environment, user, wanted, ip)
  const message_id = await store.tx(async (tx) => {
    const id = await accept(tx)
    await keepAnswer(tx, claim, { data })
    return id
  })
  await WAY_OF[method].requireAttempt?.(parts, environment, message_id)
  return data
}
