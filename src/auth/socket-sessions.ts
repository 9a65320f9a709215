import { isAllowed } from "../http/cors"
import { gathered } from "../store/batcher"
import { idList, isAmong } from "../store/columns"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { isLive, type LiveSession, sessionsWithUser } from "./access-tokens"
import { environmentById, originsOf } from "./environments"
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
  const is_admitted = origin === null || isAllowed(origin, originsOf(environment))
  return is_admitted ? undefined : "forbidden"
}

/** Many sockets are looked at together, so they share the query. */
const sessionOf = gathered<string, LiveSession | undefined>(async (db, ids) => {
  const rows = await findSessions(db, { ids })
  const byId = new Map(rows.map((row) => [row.session.id, row]))
  return ids.map((id) => byId.get(id))
})

const findSessions = prepared({ ids: idList }, (db: Reader, slot) =>
  sessionsWithUser(db).where(isAmong(db, userSessions.id, slot.ids)),
)
