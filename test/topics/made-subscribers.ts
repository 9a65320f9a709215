import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { subscribers } from "../../src/subscribers/tables"
import type { TestProject, TestService } from "../harness/service"

type Made = Partial<typeof subscribers.$inferInsert>

/** Subscribers of a project, past the API: one for each of the given fields. Their ids, in order. */
export async function makeSubscribers(
  { store }: Pick<TestService, "store">,
  { project_id }: Pick<TestProject, "project_id">,
  list: readonly Made[],
): Promise<string[]> {
  const rows = list.map((fields) => {
    const id = newId()
    const times = { created_at: now(), updated_at: now() }
    const own = { external_id: id.slice(-12), metadata: {}, tags: [], status: "active" as const }
    return { id, project_id, ...own, ...times, ...fields }
  })
  await store.tx(async (tx) => {
    for (const row of rows) await tx.insert(subscribers).values(row)
  })
  return rows.map(({ id }) => id)
}
