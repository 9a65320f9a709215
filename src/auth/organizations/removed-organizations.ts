import { eq, inArray } from "drizzle-orm"
import type { JobHandler, JobKind } from "../../jobs/jobs"
import { bumpAll, removeEmptyOf } from "../../store/counters"
import { removeSome } from "../../store/rows"
import type { Store, Tx } from "../../store/store"
import { memberCounts, membersIn } from "../organization-rows"
import { userLinks } from "../tables"
import { memberships, organizationInvitations } from "./tables"

/** Rows of one transaction: others work in between. */
const AT_ONCE = 200

/** What an organization that was deleted has left. */
export const organizationDeleted: JobKind<{ id: string; project_id: string }> = {
  name: "organization.deleted",
  schedule: (attempt) => Math.min(attempt * 30, 3600),
}

/** Removes its memberships, and its invitations with their links, in small transactions. */
export const removeOrganization = (
  store: Store,
): JobHandler<{ id: string; project_id: string }> => ({
  run: async ({ id, project_id }) => {
    while ((await store.tx((tx) => removeSomeMembers(tx, id))) > 0);
    await removeInvitations(store, id)
    await store.tx((tx) => removeEmptyOf(tx, project_id, [membersIn(id)]))
    return {}
  },
})

/** Removes some memberships of an organization that is gone. Returns how many. */
export async function removeSomeMembers(tx: Tx, organization_id: string): Promise<number> {
  const { id } = memberships
  const some = tx.select({ id }).from(memberships)
  const rows = await some.where(eq(memberships.organization_id, organization_id)).limit(AT_ONCE)
  if (rows.length === 0) return 0
  const ids = rows.map((row) => row.id)
  const gone = await tx.delete(memberships).where(inArray(id, ids)).returning()
  await bumpAll(
    tx,
    gone.flatMap((row) => memberCounts(row, -1)),
  )
  return rows.length
}

/** An invitation goes when its links are gone, which are found by it. */
async function removeInvitations(store: Store, organization_id: string): Promise<void> {
  const { id } = organizationInvitations
  const its = eq(organizationInvitations.organization_id, organization_id)
  const next = () =>
    store.read.select({ id }).from(organizationInvitations).where(its).limit(AT_ONCE)
  for (let rows = await next(); rows.length > 0; rows = await next()) {
    const ids = rows.map((row) => row.id)
    const links = { id: userLinks.token_hash, old: inArray(userLinks.invitation_id, ids) }
    while ((await removeSome(store, userLinks, { ...links, most: AT_ONCE })) > 0);
    await store.tx((tx) => tx.delete(organizationInvitations).where(inArray(id, ids)))
  }
}
