import { and, eq, like } from "drizzle-orm"
import { consents } from "../consents/tables"
import { isUuid } from "../core/ids"
import { events } from "../events/tables"
import { havingMessages } from "../messages/subscriber-messages"
import { rowById } from "../store/rows"
import type { Reader } from "../store/store"
import { heirsOf } from "../subscribers/merged-subscribers"
import { subscribers } from "../subscribers/tables"
import { unmovedTo } from "./merged-messages"
import type { TracedPerson } from "./subscriber-traces"

/** A subscriber that was removed, and not erased. */
export interface DeletedSubscriber {
  id: string
  project_id: string
}

/**
 * The deleted subscriber that had this id, where the project still holds consents, messages or events of it.
 * Undefined where there is nothing, where it was erased or merged, or where it is still there.
 */
export async function lookupDeleted(
  db: Reader,
  project_id: string,
  id: string,
): Promise<DeletedSubscriber | undefined> {
  if (!isUuid(id)) return undefined
  if (await rowById(db, subscribers, id)) return undefined
  if ((await heirsOf(db, { project_id, ids: [id] })).length > 0) return undefined
  return (await holdsAnything(db, { id, project_id })) ? { id, project_id } : undefined
}

async function holdsAnything(db: Reader, { id, project_id }: DeletedSubscriber): Promise<boolean> {
  const chain = and(eq(consents.project_id, project_id), eq(consents.subscriber_id, id))
  const closing = and(chain, eq(consents.action, "erased"))
  const anyOf = async (where: typeof chain) =>
    (await db.select({ id: consents.id }).from(consents).where(where).limit(1)).length > 0
  if (await anyOf(closing)) return false
  if (await anyOf(chain)) return true
  if ((await havingMessages(db, project_id, [id])).length > 0) return true
  // Other things have events, too, and ids of the same form.
  const ofPeople = like(events.type, "subscriber.%")
  const about = and(eq(events.subject_id, id), eq(events.project_id, project_id), ofPeople)
  return (await db.select({ id: events.id }).from(events).where(about).limit(1)).length > 0
}

/** Of a deleted subscriber only the id is known, and those of subscribers whose messages are on their way to it. */
export async function deletedPerson(
  db: Reader,
  { id, project_id }: DeletedSubscriber,
  until: string,
): Promise<TracedPerson> {
  const former = await unmovedTo(db, project_id, id)
  return { project_id, until, ...nameless(id), former: former.map(nameless) }
}

const nameless = (subscriber_id: string) => ({
  ...{ subscriber_id, external_id: null, address: null, phone: null },
})
