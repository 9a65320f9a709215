import { type Column, eq, type SQL, sql } from "drizzle-orm"
import { engine, json, table } from "./columns"

/** Types the hole of a prepared statement that takes a list for `isAmong`. */
export const idList = table("-", { ids: json<readonly string[]>().notNull() }).ids

/**
 * Whether the id is one of a list, which may have any length and is one value of the statement. Of
 * each the last 36 characters count, because the ids of events begin with `evt_`.
 */
export const isAmong = (id: Column, list: SQL): SQL =>
  engine === "sqlite"
    ? sql`${id} IN (SELECT unhex(substr(value, -36), '-') FROM json_each(${list}))`
    : sql`${id} IN (SELECT right(value, 36)::uuid
        FROM jsonb_array_elements_text((${list})::text::jsonb) AS list(value))`

/** Whether the column is the id that somebody asked for. A text that is no id matches no row. */
export function isAskedId(column: Column, id: string): SQL {
  try {
    column.mapToDriverValue(id)
  } catch {
    return sql`1 = 0`
  }
  return eq(column, id)
}
