import { type Column, type SQL, sql } from "drizzle-orm"
import { engine } from "./columns"

/** Whether the column is one of the texts in a JSON array: a list of any length is one value. */
export const isAmong = (column: Column, list: SQL): SQL =>
  engine === "sqlite"
    ? sql`${column} IN (SELECT value FROM json_each(${list}))`
    : sql`${column} IN (SELECT jsonb_array_elements_text((${list})::text::jsonb))`
