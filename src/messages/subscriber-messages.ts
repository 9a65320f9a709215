import { and, eq, isNotNull } from "drizzle-orm"
import type { Reader } from "../store/store"
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
