import { and, eq, ne, type SQL } from "drizzle-orm"
import { emitAll } from "../events/emit"
import * as personSessions from "../sign-in/person-sessions"
import type { Tx } from "../store/store"
import type { EndUserRow } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { userSessions } from "./tables"
import { type UserEventFacts, userEvent } from "./user-events"

type RevokedFacts = Pick<UserEventFacts, "reason" | "actor_id" | "ip_address">

/** Which sessions of a user end, and what is told of it. */
export interface EndOfSessions extends RevokedFacts {
  reason: string
  /** The id of the session that stays. */
  except?: string | undefined
  /** Only those of them that this selects. */
  which?: SQL | undefined
}

/**
 * Ends the living sessions of a user, with `user.session_revoked` for each: no token of theirs is accepted from the
 * next request on, on any node. Returns their number.
 */
export async function endSessions(
  tx: Tx,
  environment: AuthEnvironment,
  user: Pick<EndUserRow, "id" | "email" | "project_id">,
  { except, which, ...facts }: EndOfSessions,
): Promise<number> {
  const { project_id, user_id, id } = userSessions
  const others = except === undefined ? undefined : ne(id, except)
  const own = and(eq(project_id, user.project_id), eq(user_id, user.id), others, which)
  const ended = await personSessions.endSessions(tx, userSessions, own)
  await emitAll(
    tx,
    ended.map((session) => revoked(environment, user, session, facts)),
  )
  return ended.length
}

/** That a session ended before its time. */
export const revoked = (
  environment: AuthEnvironment,
  user: Pick<EndUserRow, "id" | "email">,
  { id: session_id, organization_id }: typeof userSessions.$inferSelect,
  facts: RevokedFacts,
) => userEvent(environment, user, "user.session_revoked", { session_id, organization_id, ...facts })
