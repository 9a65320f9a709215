import type { Caller } from "../identity/caller"
import type { Reader } from "../store/store"
import { type EndUserRow, find } from "./end-users"
import { type AuthEnvironment, environmentOf } from "./environments"

/** A request of a signed-in user, as far as it names them. */
interface OwnCall {
  caller: Caller
  request: Request
}

/** The signed-in user of a request, in their environment. */
export async function ownUser(
  db: Reader,
  call: OwnCall,
): Promise<{ environment: AuthEnvironment; user: EndUserRow; session_id: string }> {
  const { id = "", session_id = "" } = call.caller.end_user ?? {}
  const environment = await environmentOf(db, call)
  return { environment, user: await find(db, environment.project_id, id), session_id }
}
