import { and, eq, inArray, isNotNull } from "drizzle-orm"
import type { JobHandler } from "../jobs/jobs"
import { signingKeys } from "../signing-keys/tables"
import { bumpAll, removeEmptyOf } from "../store/counters"
import { removeSome } from "../store/rows"
import type { Store } from "../store/store"
import { usersOf } from "./end-users"
import { countsOf, membersIn, organizationsIn } from "./organization-rows"
import { organizationInvitations, organizations } from "./organizations/tables"
import { removeUsersOf } from "./removed-users"
import { gamingProviders, oauthProviders } from "./social/tables"
import { applicationKeys, applications, environments, USER_STATUSES, userCodes } from "./tables"

/** Rows of one transaction: others work in between. */
const AT_ONCE = 200

/**
 * Removes what an application that was deleted has left, in small transactions. It goes last itself. Links and
 * throttles end by themselves within days.
 */
export const removeApplication = (store: Store): JobHandler<{ id: string }> => ({
  run: async ({ id }) => {
    const gone = and(eq(applications.id, id), isNotNull(applications.deleting_at))
    const [application] = await store.read.select().from(applications).where(gone)
    if (!application) return {}
    const own = await store.read
      .select()
      .from(environments)
      .where(eq(environments.application_id, id))
    for (const environment of own) {
      await removeUsersOf(store, environment.id)
      await removeRows(store, environment)
    }
    await store.tx(async (tx) => {
      for (const { application_id } of [
        applicationKeys,
        signingKeys,
        oauthProviders,
        gamingProviders,
        environments,
      ])
        await tx.delete(application_id.table).where(eq(application_id, id))
      await tx.delete(applications).where(gone)
    })
    return {}
  },
})

/** What an environment has beside its users. */
async function removeRows(
  store: Store,
  { id: environment_id, project_id }: typeof environments.$inferSelect,
) {
  const codes = eq(userCodes.environment_id, environment_id)
  while ((await removeSome(store, userCodes, { id: userCodes.id, old: codes, most: AT_ONCE })) > 0);
  const own = eq(organizations.environment_id, environment_id)
  const some = () =>
    store.read.select({ id: organizations.id }).from(organizations).where(own).limit(AT_ONCE)
  for (let rows = await some(); rows.length > 0; rows = await some()) {
    const ids = rows.map(({ id }) => id)
    const { organization_id, id } = organizationInvitations
    const old = inArray(organization_id, ids)
    while ((await removeSome(store, organizationInvitations, { id, old, most: AT_ONCE })) > 0);
    await store.tx(async (tx) => {
      const gone = await tx.delete(organizations).where(inArray(organizations.id, ids)).returning()
      await bumpAll(
        tx,
        gone.flatMap((row) => countsOf(row, -1)),
      )
    })
    await store.tx((tx) => removeEmptyOf(tx, project_id, ids.map(membersIn)))
  }
  const empty = [undefined, ...USER_STATUSES].map((status) => usersOf(environment_id, status))
  const names = [organizationsIn(environment_id), ...empty]
  await store.tx((tx) => removeEmptyOf(tx, project_id, names))
}
