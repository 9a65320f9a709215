import type { Static } from "@sinclair/typebox"
import { and, count, eq, isNull } from "drizzle-orm"
import { startChallenge } from "../../sign-in/challenges"
import type { Reader, Tx } from "../../store/store"
import type { EndUserRow } from "../end-users"
import type { AuthEnvironment } from "../environments"
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

export async function backupCodesLeft(
  db: Reader,
  { project_id, id }: Pick<EndUserRow, "id" | "project_id">,
): Promise<number> {
  const { user_id, used_at } = userBackupCodes
  const own = and(eq(userBackupCodes.project_id, project_id), eq(user_id, id), isNull(used_at))
  const [row] = await db.select({ all: count() }).from(userBackupCodes).where(own)
  return row?.all ?? 0
}
