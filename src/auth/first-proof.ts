import type { Tx } from "../store/store"
import { type EndUserRow, setUser } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { removeAllMethods } from "./factors/own-factors"
import { dropUnproven } from "./social/identities"
import type { UserEventFacts } from "./user-events"

/**
 * The owner of an address is here for the first time. A stranger may have made the user of a locked row before, so their
 * accounts of providers, passkeys and second factors are taken away. The password and the sessions are the caller's.
 */
export async function forgetStranger(
  tx: Tx,
  environment: AuthEnvironment,
  user: EndUserRow,
  facts: UserEventFacts,
): Promise<EndUserRow> {
  const { mfa_methods } = user
  const bare = mfa_methods.length > 0 ? await removeAllMethods(tx, environment, user, facts) : user
  return setUser(tx, bare, { identities: await dropUnproven(tx, user) })
}
