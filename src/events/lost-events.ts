import { desc } from "drizzle-orm"
import { madeAt } from "../core/ids"
import { isoFrom, millis, millisFrom } from "../core/time"
import * as instanceValues from "../store/instance-values"
import type { Reader, Tx } from "../store/store"
import { events } from "./tables"

export const LOST_EVENTS = "lost_events"

/** More times a database is not put back while its readers still come. */
const MOST_GAPS = 20

/** Events that were made in this time are gone with the database that another one replaced. */
interface LostEvents {
  /** Exclusive: when the newest event of the copy was made. */
  from: string
  until: string
  /** The position of the last event that is left; what comes has a higher one, or a later id. */
  position: number
}

async function lostEvents(db: Reader): Promise<LostEvents[]> {
  const kept = await instanceValues.find(db, LOST_EVENTS)
  return kept === undefined ? [] : (JSON.parse(kept) as LostEvents[])
}

/** From here on, readers that know a later event than the newest of this copy go on behind it. */
export async function noteLostEvents(tx: Tx): Promise<LostEvents> {
  const { id, position } = events
  const [newest] = await tx.select({ id }).from(events).orderBy(desc(id)).limit(1)
  const [last] = await tx.select({ position }).from(events).orderBy(desc(position)).limit(1)
  const from = isoFrom(newest ? (madeAt(newest.id) ?? 0) : 0)
  const gap = { from, until: isoFrom(millis()), position: last?.position ?? 0 }
  const gaps = [...(await lostEvents(tx)), gap].slice(-MOST_GAPS)
  await instanceValues.set(tx, LOST_EVENTS, JSON.stringify(gaps))
  return gap
}

/** Where a reader of the feed goes on that knows this event; undefined where it was not lost so. */
export async function placeOfLost(
  db: Reader,
  event_id: string,
): Promise<Pick<typeof events.$inferSelect, "position" | "id"> | undefined> {
  const at = madeAt(event_id)
  if (at === undefined) return undefined
  const gaps = await lostEvents(db)
  const gap = gaps.find(({ from, until }) => at >= millisFrom(from) && at <= millisFrom(until))
  return gap && { position: gap.position, id: event_id }
}
