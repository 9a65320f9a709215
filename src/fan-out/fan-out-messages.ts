import { and, desc, eq, isNotNull, lt } from "drizzle-orm"
import { messages } from "../messages/tables"
import type { Reader } from "../store/store"
import type { FanOutRow } from "./tables"

/** The messages of a fan-out, newest first, at most `limit`: those before `below`. */
export function messagesBelow(
  db: Reader,
  { project_id, id }: FanOutRow,
  below: string | undefined,
  limit: number,
) {
  const theirs = and(
    eq(messages.project_id, project_id),
    eq(messages.fan_out_id, id),
    isNotNull(messages.fan_out_id),
    below === undefined ? undefined : lt(messages.id, below),
  )
  const rows = db.select({ id: messages.id, status: messages.status }).from(messages)
  return rows.where(theirs).orderBy(desc(messages.id)).limit(limit)
}
