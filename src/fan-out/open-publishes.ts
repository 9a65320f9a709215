import { and, eq, isNull } from "drizzle-orm"
import type { Reader } from "../store/store"
import { fanOuts } from "./tables"

/** Whether a publish to the topic is not over. */
export async function isPublishing(
  db: Reader,
  { id, project_id }: { id: string; project_id: string },
): Promise<boolean> {
  const open = and(eq(fanOuts.project_id, project_id), isNull(fanOuts.completed_at))
  const rows = db.select({ id: fanOuts.id }).from(fanOuts)
  return (await rows.where(and(open, eq(fanOuts.topic_id, id))).limit(1)).length > 0
}
