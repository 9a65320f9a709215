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
  /**
   * The devices that it may change: keys and people those of every scope, apps those of their own, and a person in an
   * app those of nobody else.
   */
  reach: "project" | "scope" | "user"
  /** Of reach `user`: the one that the credential names. */
  user_id: string | null
}

/** A subscriber stays until the transaction ends, so that no device of theirs comes after an erasure. */
export async function actorOf(tx: Tx, caller: Caller): Promise<DeviceActor> {
  const { kind, project_id, subscriber_id, end_user } = caller
  const scope = storedScope(scopeOf(caller))
  if (end_user) return { project_id, scope, reach: "user", user_id: end_user.id }
  const reach = kind === "app" ? "scope" : "project"
  if (subscriber_id === null) return { project_id, scope, reach, user_id: null }
  const theirs = and(ofProject(project_id), eq(subscribers.id, subscriber_id))
  const { external_id } = subscribers
  const [row] = await forKeyShare(tx.select({ external_id }).from(subscribers).where(theirs))
  return { project_id, scope, reach: "user", user_id: (row ?? noSubscriber()).external_id }
}
