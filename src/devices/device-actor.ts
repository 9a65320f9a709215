import { and, eq } from "drizzle-orm"
import type { Caller } from "../identity/caller"
import { forKeyShare } from "../store/columns"
import type { Tx } from "../store/store"
import { noSubscriber, ofProject } from "../subscribers/find-subscriber"
import { subscribers } from "../subscribers/tables"
import { scopeOf, storedScope } from "./scope"

/** The party that registers or changes devices. */
export interface DeviceActor {
  project_id: string
  /** Of what it registers, as rows keep it. */
  scope: string
  /** Keys and people act for any user, and reach the devices of every scope. */
  is_server: boolean
  /** The user that the credential names, if it names one. */
  user_id: string | null
}

/** A subscriber stays until the transaction ends, so that no device of theirs comes after an erasure. */
export async function actorOf(tx: Tx, caller: Caller): Promise<DeviceActor> {
  const { project_id, subscriber_id } = caller
  const scope = storedScope(scopeOf(caller))
  if (subscriber_id === null) return { project_id, scope, is_server: true, user_id: null }
  const theirs = and(ofProject(project_id), eq(subscribers.id, subscriber_id))
  const { external_id } = subscribers
  const [row] = await forKeyShare(tx.select({ external_id }).from(subscribers).where(theirs))
  return { project_id, scope, is_server: false, user_id: (row ?? noSubscriber()).external_id }
}
