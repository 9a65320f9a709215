import { eq, inArray, type SQL } from "drizzle-orm"
import type { JobHandler, JobKind } from "../../jobs/jobs"
import { removeEmptyOf } from "../../store/counters"
import { removeSome } from "../../store/rows"
import type { Store } from "../../store/store"
import { membersIn, removeSomeMembers } from "../organization-rows"
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
    const members = eq(memberships.organization_id, id)
    while ((await store.tx((tx) => removeSomeMembers(tx, members))) > 0);
    await removeInvitations(store, eq(organizationInvitations.organization_id, id))
    await store.tx((tx) => removeEmptyOf(tx, project_id, [membersIn(id)]))
    return {}
  },
})

/** Removes invitations. Each goes when its links are gone, which are found by it. */
export async function removeInvitations(store: Store, which: SQL | undefined): Promise<void> {
  const { id } = organizationInvitations
  const next = () =>
    store.read.select({ id }).from(organizationInvitations).where(which).limit(AT_ONCE)
  for (let rows = await next(); rows.length > 0; rows = await next()) {
    const ids = rows.map((row) => row.id)
    const links = { id: userLinks.token_hash, old: inArray(userLinks.invitation_id, ids) }
    while ((await removeSome(store, userLinks, { ...links, most: AT_ONCE })) > 0);
    await store.tx((tx) => tx.delete(organizationInvitations).where(inArray(id, ids)))
  }
}
