import { and, asc, type Column, desc, gt, lt, or, type SQL, sql } from "drizzle-orm"
import { millisFrom } from "../core/time"
import type { Keyset } from "./rows"

/** Where a list in the order of a moment goes on: after this moment and, within it, after this id. */
interface MomentCursor {
  at: string
  id: string
}

/** As lists carry it. */
export const cursorText = ({ at, id }: MomentCursor): string => `${at} ${id}`

function cursorFrom(text: string | undefined): MomentCursor | undefined {
  const [at, id] = text?.split(" ") ?? []
  return at && id ? { at, id } : undefined
}

/**
 * The part of a list that a window shows: newest first by `at` and, within one moment, by the id. Of
 * what stands before a cursor the nearest come first.
 */
export function byMoment(at: Column | SQL, id: Column, { after, before }: Keyset) {
  const order = before ? [asc(at), asc(id)] : [desc(at), desc(id)]
  const cursor = cursorFrom(before ?? after)
  if (!cursor) return { where: undefined, order }
  const moment = millisFrom(cursor.at)
  const [beyond, further] = before ? [sql`${at} > ${moment}`, gt] : [sql`${at} < ${moment}`, lt]
  const same = and(sql`${at} = ${moment}`, further(id, cursor.id))
  return { where: or(beyond, same), order }
}
