import { and, desc, eq, inArray, isNotNull, sql } from "drizzle-orm"
import type { Reader } from "../store/store"
import { templates } from "../templates/tables"
import { messages } from "./tables"

/** The messages that name a subscriber. As text of its own, the second condition lets both engines take the index. */
export const ofSubscriber = (project_id: string, subscriber_id: string) =>
  and(
    eq(messages.project_id, project_id),
    eq(messages.subscriber_id, subscriber_id),
    isNotNull(messages.subscriber_id),
  )

/** Those of the subscribers, removed ones among them, that messages name. */
export async function havingMessages(
  db: Reader,
  project_id: string,
  subscriber_ids: string[],
): Promise<string[]> {
  const found: string[] = []
  for (const id of subscriber_ids) {
    const rows = db.select({ id: messages.id }).from(messages).where(ofSubscriber(project_id, id))
    if ((await rows.limit(1)).length > 0) found.push(id)
  }
  return found
}

/**
 * When the newest stored message of each template was accepted. Nothing is written for it: the index of
 * messages by template has the answer. A template without messages is not in the map.
 */
export async function lastSent(
  db: Reader,
  project_id: string,
  template_ids: string[],
): Promise<Map<string, string>> {
  if (template_ids.length === 0) return new Map()
  const newest = db
    .select({ created_at: messages.created_at })
    .from(messages)
    .where(and(eq(messages.project_id, project_id), eq(messages.template_id, templates.id)))
    .orderBy(desc(messages.id))
    .limit(1)
  const ours = and(eq(templates.project_id, project_id), inArray(templates.id, template_ids))
  const rows = await db
    .select({ id: templates.id, at: sql<string | null>`(${newest})`.mapWith(messages.created_at) })
    .from(templates)
    .where(ours)
  return new Map(rows.flatMap(({ id, at }) => (at === null ? [] : [[id, at]])))
}
