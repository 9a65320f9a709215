import { and, eq, gt, inArray } from "drizzle-orm"
import type { JobHandler, JobKind } from "../jobs/jobs"
import { bumpAll } from "../store/counters"
import { removeSome } from "../store/rows"
import type { Store } from "../store/store"
import { countsOf } from "./end-users"
import {
  passkeyChallenges,
  userBackupCodes,
  userChallenges,
  userFactors,
  userPasskeys,
} from "./factors/tables"
import { removeSomeMembers } from "./organization-rows"
import { memberships } from "./organizations/tables"
import { oauthFlows, userIdentities } from "./social/tables"
import {
  userCodes,
  userLinks,
  userPasswordHistory,
  userRefreshTokens,
  userSessions,
  users,
} from "./tables"

/** Rows of one transaction: others work in between. */
const AT_ONCE = 200

/** Users whose rows go together. */
const USERS_AT_ONCE = 50

/** Removes what a request has left of users that were deleted. */
export const usersDeleted: JobKind<{ ids: string[] }> = {
  name: "users.deleted",
  schedule: (attempt) => Math.min(attempt * 30, 3600),
}

export const removeDeleted = (store: Store): JobHandler<{ ids: string[] }> => ({
  run: async ({ ids }) => {
    await removeUsers(store, ids)
    return {}
  },
})

/** Removes all users of an environment, for an application that is removed. Resolves when none is left. */
export async function removeUsersOf(store: Store, environment_id: string): Promise<void> {
  const { id } = users
  for (let after = ""; ; ) {
    const next = and(eq(users.environment_id, environment_id), gt(id, after))
    const rows = await store.read
      .select({ id })
      .from(users)
      .where(next)
      .orderBy(id)
      .limit(USERS_AT_ONCE)
    const ids = rows.map((row) => row.id)
    await removeUsers(store, ids)
    if (ids.length < USERS_AT_ONCE) return
    after = ids.at(-1) ?? after
  }
}

/** Removes users with everything that names them, in small transactions. The users go last; returns their number. */
export async function removeUsers(store: Store, ids: string[]): Promise<number> {
  if (ids.length === 0) return 0
  await removeSessions(store, ids)
  const theirs = inArray(memberships.user_id, ids)
  while ((await store.tx((tx) => removeSomeMembers(tx, theirs))) > 0);
  const own = [
    { rows: userCodes, id: userCodes.id, user_id: userCodes.user_id },
    { rows: userLinks, id: userLinks.token_hash, user_id: userLinks.user_id },
    {
      rows: userPasswordHistory,
      id: userPasswordHistory.id,
      user_id: userPasswordHistory.user_id,
    },
    { rows: userFactors, id: userFactors.id, user_id: userFactors.user_id },
    { rows: userBackupCodes, id: userBackupCodes.code_hash, user_id: userBackupCodes.user_id },
    { rows: userChallenges, id: userChallenges.token_hash, user_id: userChallenges.user_id },
    { rows: userPasskeys, id: userPasskeys.id, user_id: userPasskeys.user_id },
    { rows: passkeyChallenges, id: passkeyChallenges.id, user_id: passkeyChallenges.user_id },
    { rows: userIdentities, id: userIdentities.id, user_id: userIdentities.user_id },
    { rows: oauthFlows, id: oauthFlows.id, user_id: oauthFlows.user_id },
  ]
  for (const { rows, id, user_id } of own) {
    const old = inArray(user_id, ids)
    while ((await removeSome(store, rows, { id, old, most: AT_ONCE })) > 0);
  }
  return store.tx(async (tx) => {
    const gone = await tx.delete(users).where(inArray(users.id, ids)).returning()
    await bumpAll(
      tx,
      gone.flatMap((row) => countsOf(row, -1)),
    )
    return gone.length
  })
}

/** A session goes when its refresh tokens are gone, which are found by it. */
async function removeSessions(store: Store, user_ids: string[]) {
  const { id, user_id } = userSessions
  const theirs = inArray(user_id, user_ids)
  const next = () => store.read.select({ id }).from(userSessions).where(theirs).limit(AT_ONCE)
  for (let rows = await next(); rows.length > 0; rows = await next()) {
    const ids = rows.map((row) => row.id)
    const old = inArray(userRefreshTokens.session_id, ids)
    const tokens = { id: userRefreshTokens.token_hash, old, most: AT_ONCE }
    while ((await removeSome(store, userRefreshTokens, tokens)) > 0);
    await store.tx((tx) => tx.delete(userSessions).where(inArray(id, ids)))
  }
}
