import type { Static } from "@sinclair/typebox"
import type { Tx } from "../store/store"
import type { AuthParts } from "./auth-parts"
import type { CodeWay } from "./code-ways"
import { endSessions } from "./end-sessions"
import * as endUsers from "./end-users"
import type { AuthEnvironment } from "./environments"
import { forgetStranger } from "./first-proof"
import type { SignInAnswer } from "./schemas"
import { completeSignIn, createUser, type UserClient } from "./sign-in"
import { emitUser } from "./user-events"

export type NewProfile = Pick<endUsers.NewEndUser, "name" | "metadata">

interface ProvenAddress {
  address: string
  provider: string
  amr: string[]
  client: UserClient
  /** With it a user is made where the address has none. */
  profile: NewProfile | undefined
}

/** No way in knows a user that was only invited (contract 50, section 5). */
export const isKnown = (user: endUsers.EndUserRow | undefined): user is endUsers.EndUserRow =>
  user !== undefined && user.status !== "invited"

/**
 * Signs in the reader of what was sent to an address, which is verified from now on. Undefined where
 * it has nobody that may sign in. Throws as `completeSignIn`.
 *
 * A stranger may have made a user of this address with a password of their own. So the first proof of any address takes
 * the password, the accounts of providers, every second factor and every session away.
 */
export async function signInByAddress(
  tx: Tx,
  parts: AuthParts,
  way: CodeWay,
  environment: AuthEnvironment,
  { address, profile, ...proof }: ProvenAddress,
): Promise<Static<typeof SignInAnswer> | undefined> {
  const newcomer = profile && { ...way.newcomer(address), ...profile }
  const made = newcomer && (await createUser(tx, environment, newcomer))
  const found = made ?? (await way.find(tx, environment, address))
  if (!isKnown(found)) return undefined
  const known = made ?? (await endUsers.findForUpdate(tx, found.project_id, found.id))
  const was_verified = known[way.verified]
  const is_first_proof = !made && !known.email_verified && !known.phone_verified
  const why = { reason: "first_proof", ip_address: proof.client.ip }
  const user = is_first_proof ? await forgetStranger(tx, environment, known, why) : known
  const unproven = is_first_proof ? { password_hash: null } : {}
  const change = { [way.verified]: true, ...unproven }
  const proven = was_verified ? user : await endUsers.setUser(tx, user, change)
  if (is_first_proof) await endSessions(tx, environment, user, why)
  const is_new = made !== undefined
  const answer = await completeSignIn(tx, parts, { environment, user: proven, is_new, ...proof })
  const facts = { provider: proof.provider, ip_address: proof.client.ip }
  if (!was_verified) await emitUser(tx, environment, proven, way.verified_event, facts)
  return answer
}
