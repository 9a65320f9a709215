import { asc, eq } from "drizzle-orm"
import { events } from "../../src/events/tables"
import type { TestProject, TestService } from "../harness/service"

/** The events of users of a project with their provider, in the order of their making. */
export async function toldOf(
  { store }: Pick<TestService, "store">,
  { project_id }: Pick<TestProject, "project_id">,
): Promise<string[]> {
  const own = await eventsOf({ store }, { project_id })
  return own.map(({ type, metadata: { provider } }) => (provider ? `${type} ${provider}` : type))
}

/** The same events in full. */
export async function eventsOf(
  { store }: Pick<TestService, "store">,
  { project_id }: Pick<TestProject, "project_id">,
) {
  const mine = eq(events.project_id, project_id)
  const all = await store.read.select().from(events).where(mine).orderBy(asc(events.id))
  const own = all.filter(({ type }) => type.startsWith("user."))
  return own.map(({ type, data }) => ({ type, ...(data as unknown as UserEventData) }))
}

interface UserEventData {
  application_id: string
  user: { id: string; email: string | null }
  metadata: Record<string, string>
}
