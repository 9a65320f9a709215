import { invalid } from "../core/errors"
import type { Caller } from "../identity/caller"
import type { Reader } from "../store/store"
import { find } from "./end-users"
import { environmentOf } from "./environments"
import { findOwned, type OwnedUser } from "./managed-users"

/** A request of a signed-in user, as far as it names them. */
interface OwnCall {
  caller: Caller
  request: Request
}

export interface OwnSession extends OwnedUser {
  session_id: string
}

/** The signed-in user of a request, in their environment. */
export async function ownUser(db: Reader, call: OwnCall): Promise<OwnSession> {
  const { id = "", session_id = "" } = call.caller.end_user ?? {}
  const environment = await environmentOf(db, call)
  return { environment, user: await find(db, environment.project_id, id), session_id }
}

/** The signed-in user, or the one that a key names: of its application, where it has one. */
export async function userMeant(
  db: Reader,
  call: OwnCall,
  user_id: string | undefined,
): Promise<OwnedUser & { session_id?: string }> {
  if (call.caller.kind === "user") return ownUser(db, call)
  if (user_id === undefined) throw invalid("user_id", "required", "The request needs the user.")
  return findOwned(db, call.caller, user_id)
}
