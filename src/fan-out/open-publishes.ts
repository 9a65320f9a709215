import {
  and,
  asc,
  eq,
  exists,
  gte,
  isNotNull,
  isNull,
  lt,
  lte,
  type SQL,
  type SQLWrapper,
} from "drizzle-orm"
import { tooMany } from "../core/errors"
import { projects } from "../identity/tables"
import { countRows, rowForUpdate } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import type { MemberPlace } from "../topics/memberships"
import { fanOutParts, fanOuts } from "./tables"

/** Publishes of one project that are not over, scheduled ones with them. Each keeps its texts. */
export const MOST_OPEN_PUBLISHES = 1000

const isOpen = (project_id: string) =>
  and(eq(fanOuts.project_id, project_id), isNull(fanOuts.completed_at))

/** Throws 409 `conflict`, reason `too_many`, where the project cannot have one more publish now. */
export async function requireRoomForPublish(tx: Tx, project_id: string): Promise<void> {
  await rowForUpdate(tx, projects, project_id)
  if ((await countRows(tx, fanOuts, isOpen(project_id))) < MOST_OPEN_PUBLISHES) return
  const text = `A project has at most ${MOST_OPEN_PUBLISHES} publishes that are not over. Wait for the end of one, or cancel one.`
  tooMany(text, MOST_OPEN_PUBLISHES)
}

export const isOfOpenFanOut = (db: Reader, project_id: string, fan_out_id: SQLWrapper): SQL =>
  exists(
    db
      .select({ id: fanOuts.id })
      .from(fanOuts)
      .where(and(isOpen(project_id), eq(fanOuts.id, fan_out_id))),
  )

/** When the first of the publishes began that are not over. Undefined: none has begun. */
export async function firstOpenStart(db: Reader, project_id: string): Promise<string | undefined> {
  const { started_at } = fanOuts
  const begun = and(isOpen(project_id), isNotNull(started_at))
  const rows = db.select({ started_at }).from(fanOuts).where(begun)
  const [first] = await rows.orderBy(asc(started_at)).limit(1)
  return first?.started_at ?? undefined
}

export async function isPublishing(
  db: Reader,
  { id, project_id }: { id: string; project_id: string },
): Promise<boolean> {
  const rows = db.select({ id: fanOuts.id }).from(fanOuts)
  return (await rows.where(and(isOpen(project_id), eq(fanOuts.topic_id, id))).limit(1)).length > 0
}

/**
 * Whether a publish that is not over is yet to come to the first place, and began before the second one was taken.
 * A subscriber that has both needs the first one, because the publish never comes to the second one.
 */
export async function isYetToCome(
  db: Reader,
  project_id: string,
  { topic_id, number }: MemberPlace,
  { created_at }: Pick<MemberPlace, "created_at">,
): Promise<boolean> {
  const { fan_out_id, cursor, until } = fanOutParts
  const early = and(eq(fanOuts.topic_id, topic_id), lte(fanOuts.started_at, created_at))
  const rows = await db
    .select({ fan_out_id })
    .from(fanOutParts)
    .innerJoin(fanOuts, eq(fanOuts.id, fan_out_id))
    .where(and(isOpen(project_id), early, lt(cursor, number), gte(until, number)))
    .limit(1)
  return rows.length > 0
}
