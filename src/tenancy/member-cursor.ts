import { and, asc, type Column, desc, gt, lt, or, type SQL, sql } from "drizzle-orm"
import { millisFrom } from "../core/time"
import { accountMembers } from "../identity/tables"
import type { ListWindow } from "../store/rows"

/** Where a list of people goes on: after this moment and, within it, after this person. */
interface MemberCursor {
  at: string
  user_id: string
}

/** As lists carry it. */
export const cursorText = ({ at, user_id }: MemberCursor): string => `${at} ${user_id}`

function cursorFrom(text: string | undefined): MemberCursor | undefined {
  const [at, user_id] = text?.split(" ") ?? []
  return at && user_id ? { at, user_id } : undefined
}

/**
 * The part of a list of people that a window shows: newest first by `at` and, within one moment, by
 * the user's id. Of what stands before a cursor the nearest come first.
 */
export function byMoment(at: Column | SQL, { after, before }: ListWindow) {
  const { user_id } = accountMembers
  const order = before ? [asc(at), asc(user_id)] : [desc(at), desc(user_id)]
  const cursor = cursorFrom(before ?? after)
  if (!cursor) return { where: undefined, order }
  const moment = millisFrom(cursor.at)
  const [beyond, further] = before ? [sql`${at} > ${moment}`, gt] : [sql`${at} < ${moment}`, lt]
  const same = and(sql`${at} = ${moment}`, further(user_id, cursor.user_id))
  return { where: or(beyond, same), order }
}
