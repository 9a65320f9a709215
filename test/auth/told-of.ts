import { asc, eq } from "drizzle-orm"
import { events } from "../../src/events/tables"
import type { TestProject, TestService } from "../harness/service"

/** The events of users of a project with their provider, in the order of their making. */
export async function toldOf(
  { store }: Pick<TestService, "store">,
  { project_id }: Pick<TestProject, "project_id">,
): Promise<string[]> {
  const mine = eq(events.project_id, project_id)
  const all = await store.read.select().from(events).where(mine).orderBy(asc(events.id))
  const own = all.filter(({ type }) => type.startsWith("user."))
  return own.map(({ type, data }) => {
    const { provider } = (data as { metadata: { provider?: string } }).metadata
    return provider ? `${type} ${provider}` : type
  })
}
