import type { Static } from "@sinclair/typebox"
import { and, count, eq, isNull } from "drizzle-orm"
import { fail } from "../../core/errors"
import { lookupChallenge, startChallenge, tryChallenge } from "../../sign-in/challenges"
import type { Reader, Tx } from "../../store/store"
import type { AuthParts } from "../auth-parts"
import type { EndUserRow } from "../end-users"
import type { AuthEnvironment } from "../environments"
import { countCheck } from "../guesses"
import type { FactorAwaited } from "../schemas"
import { userBackupCodes, userChallenges } from "./tables"

export type ChallengeMethod = Static<typeof FactorAwaited>["mfa_challenge"]["methods"][number]

/** What `amr` says of a session with a second factor (RFC 8176, section 2). */
export const SECOND_FACTOR = "mfa"

/** The first factor was right: the question for the second one. Its answer brings `startSignedIn`. */
export async function awaitFactor(
  tx: Tx,
  { user, environment, provider, amr, organization_id = null }: AwaitingUser,
): Promise<Static<typeof FactorAwaited>> {
  const { project_id, id: user_id } = user
  const { token, expires_at } = await startChallenge(tx, userChallenges, {
    ...{ user_id, project_id, environment_id: environment.id },
    ...{ provider, amr, organization_id },
  })
  const has_codes = (await backupCodesLeft(tx, user)) > 0
  const methods = [...user.mfa_methods, ...(has_codes ? ["backup_code" as const] : [])]
  return { mfa_required: true, mfa_challenge: { token, methods, expires_at } }
}

interface AwaitingUser {
  environment: AuthEnvironment
  user: EndUserRow
  provider: string
  amr: string[]
  organization_id?: string | null | undefined
}

/** A sign-in that waits for its second factor. */
export type FactorChallenge = typeof userChallenges.$inferSelect

/** The challenge of this environment. Counts no try. Throws 401 `invalid_mfa` for one that takes none any more. */
export async function openChallenge(
  db: Reader,
  environment: AuthEnvironment,
  token_hash: string,
): Promise<FactorChallenge> {
  const found = await lookupChallenge(db, userChallenges, token_hash, challengesOf(environment))
  return found ?? noChallenge()
}

/**
 * Counts a try at the challenge, and at the user, before its answer is looked at. Throws 401 `invalid_mfa` after five,
 * and 429 `otp_verify_rate_limit_exceeded` after fifteen of an hour, at whatever challenge of the user.
 */
export async function tryFactorChallenge(
  parts: Pick<AuthParts, "store" | "throttle">,
  environment: AuthEnvironment,
  token: string,
): Promise<FactorChallenge> {
  const among = challengesOf(environment)
  const found = await tryChallenge(parts.store, userChallenges, token, among)
  if (!found) return noChallenge()
  await countCheck(parts, environment, found.user_id)
  return found
}

const challengesOf = ({ id, project_id }: AuthEnvironment) =>
  and(eq(userChallenges.project_id, project_id), eq(userChallenges.environment_id, id))

export const noChallenge = (): never =>
  fail("invalid_mfa", "This sign-in does not wait for a second factor any more. Begin it anew.")

export async function backupCodesLeft(
  db: Reader,
  { project_id, id }: Pick<EndUserRow, "id" | "project_id">,
): Promise<number> {
  const { user_id, used_at } = userBackupCodes
  const own = and(eq(userBackupCodes.project_id, project_id), eq(user_id, id), isNull(used_at))
  const [row] = await db.select({ all: count() }).from(userBackupCodes).where(own)
  return row?.all ?? 0
}
