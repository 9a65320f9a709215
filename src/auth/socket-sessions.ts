import { isAllowed } from "../http/cors"
import { gathered } from "../store/batcher"
import { idList, isAmong } from "../store/columns"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { isLive, type LiveSession, sessionsWithUser, type UserSessionRow } from "./access-tokens"
import { type AuthEnvironment, environmentById, originsOf } from "./environments"
import { SECOND_FACTOR } from "./factors/factor-challenges"
import { userSessions } from "./tables"

/** Why a page of this origin may not keep a socket that a session opened; undefined where it may. */
export async function refusalOfSession(
  db: Reader,
  session_id: string,
  origin: string | null,
): Promise<"unauthorized" | "forbidden" | undefined> {
  const found = await sessionOf(db, session_id)
  const environment = found && (await environmentById(db, found.session.environment_id))
  if (!environment || !isLive(found, environment)) return "unauthorized"
  if (lacksFactor(found.session, environment)) return "forbidden"
  const is_admitted = origin === null || isAllowed(origin, originsOf(environment))
  return is_admitted ? undefined : "forbidden"
}

/** Somebody that acts for the project has no factor of the user. */
export const lacksFactor = (
  { act, amr, lacks_factor }: UserSessionRow,
  { settings }: AuthEnvironment,
) =>
  act === null &&
  !amr.includes(SECOND_FACTOR) &&
  (lacks_factor || settings.mfa.policy === "required")

/** Many sockets are looked at together, so they share the query. */
const sessionOf = gathered<string, LiveSession | undefined>(async (db, ids) => {
  const rows = await findSessions(db, { ids })
  const byId = new Map(rows.map((row) => [row.session.id, row]))
  return ids.map((id) => byId.get(id))
})

const findSessions = prepared({ ids: idList }, (db: Reader, slot) =>
  sessionsWithUser(db).where(isAmong(db, userSessions.id, slot.ids)),
)
