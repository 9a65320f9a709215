import type { AuthParts } from "./auth-parts"
import { findForUpdate } from "./end-users"
import { type OwnedUser, remove } from "./managed-users"
import { requireOwnProof } from "./proof"
import { removeUsers } from "./removed-users"

/** A signed-in user deletes themselves. Throws as `requireOwnProof`. */
export async function leave(
  parts: AuthParts,
  { environment, user }: OwnedUser,
  proof: { password?: string | undefined; code?: string | undefined },
  ip: string,
): Promise<void> {
  const { store } = parts
  const settle = await requireOwnProof(parts, environment, user, proof)
  await store.tx(async (tx) => {
    const same = await findForUpdate(tx, environment.project_id, user.id)
    await settle(tx)
    await remove(tx, { environment, user: same }, { ip_address: ip })
  })
  await removeUsers(store, [user.id])
}
