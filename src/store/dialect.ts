import { type Column, eq, type SQL, sql } from "drizzle-orm"
import { json, table } from "./columns"
import type { Reader } from "./store"

// What one engine says otherwise than the other. Only selects of Postgres have `for`.

interface Locking<Query> {
  for?: (strength: string, options?: object) => Query
}

/** Holds the rows until the end of the transaction, so that what was read is still true then. */
export const forUpdate = <Query extends object>(query: Query): Query =>
  (query as Locking<Query>).for?.("update") ?? query

/** As `forUpdate`, but others may hold the rows so at the same time: only a change has to wait. */
export const forShare = <Query extends object>(query: Query): Query =>
  (query as Locking<Query>).for?.("share") ?? query

/** Nobody removes the rows before the end of the transaction. Other changes of them need not wait. */
export const forKeyShare = <Query extends object>(query: Query): Query =>
  (query as Locking<Query>).for?.("key share") ?? query

/** Lets several nodes claim from one queue. SQLite has one writer, so it has nothing to skip. */
export const skipLocked = <Query extends object>(query: Query): Query =>
  (query as Locking<Query>).for?.("update", { skipLocked: true }) ?? query

/** Types the hole of a prepared statement that takes a list for `isAmong`. */
export const idList = table("-", { ids: json<readonly string[]>().notNull() }).ids

/**
 * Whether the id is one of a list, which may have any length and is one value of the statement. Of
 * each the last 36 characters count, because the ids of events begin with `evt_`.
 */
export const isAmong = (db: Reader, id: Column, list: SQL): SQL =>
  db.isAlone
    ? sql`${id} IN (SELECT unhex(substr(value, -36), '-') FROM json_each(${list}))`
    : sql`${id} IN (SELECT right(value, 36)::uuid
        FROM jsonb_array_elements_text((${list})::text::jsonb) AS list(value))`

/** Types the hole of a prepared statement that takes a list for `isAmongTexts`. */
export const textList = idList

/** As `isAmong`, for a column of text. */
export const isAmongTexts = (db: Reader, column: Column, list: SQL): SQL =>
  db.isAlone
    ? sql`${column} IN (SELECT value FROM json_each(${list}))`
    : sql`${column} = ANY (ARRAY(SELECT jsonb_array_elements_text((${list})::text::jsonb)))`

/**
 * Ends a subselect of an EXISTS that asks one index for one row. Postgres may turn others into a join, and
 * then reads a whole table for a few rows.
 */
export const askedByRow = (db: Reader): SQL => (db.isAlone ? sql`` : sql` LIMIT 1 OFFSET 0`)

/** Whether the column equals the given id. A text that is no id matches no row. */
export function isAskedId(column: Column, id: string): SQL {
  try {
    column.mapToDriverValue(id)
  } catch {
    return sql`1 = 0`
  }
  return eq(column, id)
}

/**
 * As `eq`, and no reason for SQLite to take an index that begins with the column: without statistics it would, although
 * another condition leaves far fewer rows.
 */
export const eqUnindexed = (db: Reader, column: Column, value: string): SQL =>
  db.isAlone ? sql`+${column} = ${sql.param(value, column)}` : eq(column, value)

/** How many elements the list in a `json` column has. */
export const lengthOf = (db: Reader, list: Column): SQL =>
  db.isAlone ? sql`json_array_length(${list})` : sql`json_array_length(${list}::json)`

/**
 * Whether no row can still come before this one. On Postgres a transaction that began earlier may
 * commit later, and a reader that went past it would never see its rows.
 */
export const isSettled = (db: Reader, position: Column): SQL | undefined =>
  db.isAlone
    ? undefined
    : sql`${position} < (pg_snapshot_xmin(pg_current_snapshot())::text)::bigint`
