import { newId } from "../../src/core/ids"
import { insertAll, newRow } from "../../src/subscribers/subscribers"
import type { subscribers } from "../../src/subscribers/tables"
import type { TestProject, TestService } from "../harness/service"

type Made = Partial<typeof subscribers.$inferInsert>

/** Subscribers of a project, past the API: one for each of the given fields. Their ids, in order. */
export async function makeSubscribers(
  { store }: Pick<TestService, "store">,
  { project_id }: Pick<TestProject, "project_id">,
  list: readonly Made[],
): Promise<string[]> {
  const rows = list.map(({ external_id = newId().slice(-12), ...fields }) => {
    const given = Object.entries(fields).filter(([, value]) => value !== undefined)
    return newRow(project_id, { external_id, fields: Object.fromEntries(given) })
  })
  await store.tx((tx) => insertAll(tx, rows))
  return rows.map(({ id }) => id)
}
