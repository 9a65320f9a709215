import { and, eq, isNull } from "drizzle-orm"
import { tooMany } from "../core/errors"
import { holdProject } from "../identity/hold-project"
import { countRows } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { fanOuts } from "./tables"

/** Publishes of one project that are not over, scheduled ones with them. Each keeps its texts. */
export const MOST_OPEN_PUBLISHES = 1000

const isOpen = (project_id: string) =>
  and(eq(fanOuts.project_id, project_id), isNull(fanOuts.completed_at))

/** Throws 409 `conflict`, reason `too_many`, where the project cannot have one more publish now. */
export async function demandRoomForPublish(tx: Tx, project_id: string): Promise<void> {
  await holdProject(tx, project_id)
  if ((await countRows(tx, fanOuts, isOpen(project_id))) < MOST_OPEN_PUBLISHES) return
  const text = `A project has at most ${MOST_OPEN_PUBLISHES} publishes that are not over. Wait for the end of one, or cancel one.`
  tooMany(text, MOST_OPEN_PUBLISHES)
}

/** Whether a publish to the topic is not over. */
export async function isPublishing(
  db: Reader,
  { id, project_id }: { id: string; project_id: string },
): Promise<boolean> {
  const rows = db.select({ id: fanOuts.id }).from(fanOuts)
  return (await rows.where(and(isOpen(project_id), eq(fanOuts.topic_id, id))).limit(1)).length > 0
}
