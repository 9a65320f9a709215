import { and, eq, gte, lt, sql } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { isoFrom, millisFrom } from "../core/time"
import { lengthOf } from "../store/dialect"
import type { Reader } from "../store/store"
import { usageDays } from "../tenancy/tables"
import { messages } from "./tables"

const DAY_MILLISECONDS = 86_400_000

/** Ids are made a moment before or after the message's own time. */
const MARGIN_MILLISECONDS = 60_000

/**
 * The email units of a project on a day, as they were counted and as the messages themselves tell
 * them: in one statement, so that both speak of the same moment.
 */
export async function emailUnits(db: Reader, project_id: string, day: string) {
  const start = millisFrom(`${day}T00:00:00.000Z`)
  const end = start + DAY_MILLISECONDS
  const counted = sql<number>`(SELECT COALESCE(SUM(${usageDays.value}), 0) FROM ${usageDays}
    WHERE ${eq(usageDays.project_id, project_id)} AND ${usageDays.day} = ${day}
      AND ${usageDays.metric} = 'email')`
  const [row] = await db
    .select({
      counted: counted.mapWith(Number),
      told: sql<number>`COALESCE(SUM(${lengthOf(db, messages.recipients)}), 0)`.mapWith(Number),
    })
    .from(messages)
    .where(
      and(
        eq(messages.project_id, project_id),
        eq(messages.channel, "email"),
        eq(messages.sandbox, false),
        gte(messages.id, firstIdAt(start - MARGIN_MILLISECONDS)),
        lt(messages.id, firstIdAt(end + MARGIN_MILLISECONDS)),
        gte(messages.created_at, isoFrom(start)),
        lt(messages.created_at, isoFrom(end)),
      ),
    )
  return { counted: row?.counted ?? 0, told: row?.told ?? 0 }
}
