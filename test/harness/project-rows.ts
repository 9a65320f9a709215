import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { ACCOUNT_DEFAULTS } from "../../src/identity/caller"
import { accounts, projects } from "../../src/identity/tables"
import type { Store } from "../../src/store/store"

/** An account with one project, past every rule of how they are made. */
export async function addProject(
  store: Store,
  account: Partial<typeof accounts.$inferInsert> = {},
): Promise<{ account_id: string; project_id: string }> {
  const [account_id, project_id] = [newId(), newId()]
  const times = { created_at: now(), updated_at: now() }
  await store.tx(async (tx) => {
    await tx.insert(accounts).values({
      id: account_id,
      name: "Test",
      slug: account_id,
      plan: "enterprise",
      limits: null,
      status: "active",
      sending_status: "active",
      settings: ACCOUNT_DEFAULTS,
      ...account,
      ...times,
    })
    const names = { name: "Test", slug: project_id, status: "active" as const }
    const row = { id: project_id, account_id, ...names, settings: {}, hidden: false }
    await tx.insert(projects).values({ ...row, ...times })
  })
  return { account_id, project_id }
}
