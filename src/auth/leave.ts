import type { AuthParts } from "./auth-parts"
import { findForUpdate } from "./end-users"
import { requireStepUp } from "./factors/step-up"
import { remove } from "./managed-users"
import type { OwnSession } from "./own-user"
import { requireOwnProof } from "./proof"
import { removeUsers } from "./removed-users"

/** A signed-in user deletes themselves. Throws as `requireOwnProof`, and as `requireStepUp`. */
export async function leave(
  parts: AuthParts,
  { environment, user, session_id }: OwnSession,
  proof: { password?: string | undefined; code?: string | undefined },
  ip: string,
): Promise<void> {
  const { store } = parts
  await requireStepUp(store.read, user, session_id)
  const settle = await requireOwnProof(parts, environment, user, proof)
  await store.tx(async (tx) => {
    const same = await findForUpdate(tx, environment.project_id, user.id)
    await settle(tx)
    await remove(tx, { environment, user: same }, { ip_address: ip })
  })
  await removeUsers(store, [user.id])
}
