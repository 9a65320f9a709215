import { lt } from "drizzle-orm"
import { now } from "../core/time"
import { forgetSuccessors } from "../sign-in/person-sessions"
import { removeSome } from "../store/rows"
import type { Store } from "../store/store"
import { passkeyChallenges, userChallenges } from "./factors/tables"
import { oauthFlows, usedAssertions } from "./social/tables"
import { userCodes, userLinks, userRefreshTokens, userSessions, userThrottles } from "./tables"

const PURGED_AT_ONCE = 500

/** Forgets what opens nothing any more, some of each kind. Returns how many rows went. */
export async function purgeSignIns(store: Store): Promise<number> {
  await forgetSuccessors(store, userRefreshTokens)
  const past = now()
  const kinds = [
    {
      rows: userRefreshTokens,
      id: userRefreshTokens.token_hash,
      end: userRefreshTokens.expires_at,
    },
    { rows: userSessions, id: userSessions.id, end: userSessions.expires_at },
    { rows: userCodes, id: userCodes.id, end: userCodes.expires_at },
    { rows: userLinks, id: userLinks.token_hash, end: userLinks.expires_at },
    { rows: userChallenges, id: userChallenges.token_hash, end: userChallenges.expires_at },
    { rows: passkeyChallenges, id: passkeyChallenges.id, end: passkeyChallenges.expires_at },
    { rows: oauthFlows, id: oauthFlows.id, end: oauthFlows.expires_at },
    { rows: usedAssertions, id: usedAssertions.hash, end: usedAssertions.expires_at },
    { rows: userThrottles, id: userThrottles.subject, end: userThrottles.ends_at },
  ]
  let gone = 0
  for (const { rows, id, end } of kinds)
    gone += await removeSome(store, rows, { id, old: lt(end, past), most: PURGED_AT_ONCE })
  return gone
}
