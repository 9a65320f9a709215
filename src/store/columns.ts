import { Column, eq, type SQL, sql } from "drizzle-orm"
import * as sqlite from "drizzle-orm/sqlite-core"
import { bytesOfEventId, bytesOfId, shownEventId, shownId } from "../core/ids"
import type { Reader } from "./store"

/**
 * One declaration serves both engines: columns encode for SQLite, and `postgres.ts` changes the few
 * values that Postgres wants otherwise. A decoder takes what either driver gives. What queries of the
 * columns say otherwise on one engine than on the other follows at the end.
 */
export const { sqliteTable: table, index, uniqueIndex, primaryKey } = sqlite

type PostgresType = "text" | 'text COLLATE "C"' | "uuid" | "bigint" | "boolean" | "bytea"

interface ColumnWord<Data> {
  dataType: () => "text" | "blob" | "integer"
  /** The column's type where the database is a Postgres. */
  postgres: PostgresType
  toDriver?: (value: Data) => unknown
  fromDriver?: (value: never) => Data
}

const word = <Data>(params: ColumnWord<Data>) =>
  sqlite.customType<{ data: Data; driverData: unknown }>(params as never)

const paramsOf = (column: Column) => {
  const { config } = column as unknown as { config: { customTypeParams?: ColumnWord<unknown> } }
  return config.customTypeParams
}

/** The column's type where the database is a Postgres. */
export const postgresType = (column: Column): PostgresType => paramsOf(column)?.postgres ?? "text"

/** Whether SQLite takes and gives the column's values as they are in code. */
export const isPlain = (column: Column): { encoded: boolean; decoded: boolean } => {
  const params = paramsOf(column)
  if (params) {
    const { toDriver, fromDriver } = params
    return { encoded: !toDriver, decoded: !fromDriver || fromDriver === numberFrom }
  }
  return {
    encoded: column.mapToDriverValue === Column.prototype.mapToDriverValue,
    decoded: column.mapFromDriverValue === Column.prototype.mapFromDriverValue,
  }
}

/** A prepared statement hands NULL to the encoder too, so every encoder must let it through. */
const orNull =
  <From, To>(convert: (value: From) => To) =>
  (value: From): To =>
    value === null ? (null as To) : convert(value)

/** Most times of a row, and of a group of rows, are one and the same. */
let latest = { iso: "1970-01-01T00:00:00.000Z", milliseconds: 0 }
let second_latest = latest

function parseTime(iso: string): number {
  if (iso === latest.iso) return latest.milliseconds
  if (iso === second_latest.iso) return second_latest.milliseconds
  const milliseconds = Date.parse(iso)
  if (Number.isNaN(milliseconds)) throw new TypeError(`"${iso}" is not a time`)
  second_latest = latest
  latest = { iso, milliseconds }
  return milliseconds
}

/** Apart from what was parsed: that need not be in the form in which times are printed. */
const printed = { iso: "1970-01-01T00:00:00.000Z", milliseconds: 0 }

function printTime(milliseconds: number): string {
  if (milliseconds !== printed.milliseconds) {
    printed.iso = new Date(milliseconds).toISOString() // throws before the number is kept
    printed.milliseconds = milliseconds
  }
  return printed.iso
}

/** Postgres gives a bigint as text. Ours are exact to 2^53 on both engines. */
const numberFrom = (value: number | string) => (typeof value === "number" ? value : Number(value))

const plainText = () => sqlite.text()

const jsonWord = word<unknown>({
  dataType: () => "text",
  postgres: "text",
  toDriver: orNull((value: unknown) => JSON.stringify(value)),
  fromDriver: (text: string): unknown => JSON.parse(text),
})

export const text = <T extends string = string>() => plainText().$type<T>()

/** Text that sorts by byte on both engines, so that an index finds all that begin alike. */
export const bytewiseText = word<string>({ dataType: () => "text", postgres: 'text COLLATE "C"' })

/**
 * Text on both engines, on purpose. We never search inside JSON, and a `jsonb` column would
 * receive a text already encoded and encode it a second time.
 */
export const json = <T>() => jsonWord().$type<T>()

export const int = word<number>({
  dataType: () => "integer",
  postgres: "bigint",
  fromDriver: numberFrom,
})

export const bool = word<boolean>({
  dataType: () => "integer", // the driver binds true as 1
  postgres: "boolean",
  fromDriver: (value: number | boolean) => value === true || value === 1,
})

export const bytes = word<Buffer>({
  dataType: () => "blob",
  postgres: "bytea",
  fromDriver: ({ buffer, byteOffset, byteLength }: Uint8Array) =>
    Buffer.from(buffer, byteOffset, byteLength),
})

/** Milliseconds since 1970 in the database, ISO 8601 text in code: a row is already an answer. */
export const time = word<string>({
  dataType: () => "integer",
  postgres: "bigint",
  toDriver: orNull(parseTime),
  fromDriver: (value: number | string) => printTime(numberFrom(value)),
})

/**
 * The order of commits, filled in by the database: the transaction's number on Postgres, always 0
 * on SQLite, whose single writer makes ids in the order of their commits anyway.
 */
export const position = () => int().notNull().default(0)

/** A UUIDv7 of ours: text in code, 16 bytes in the database. `""` sorts before all of them. */
export const ref = word<string>({
  dataType: () => "blob",
  postgres: "uuid",
  toDriver: orNull(bytesOfId),
  fromDriver: shownId,
})

export const id = () => ref().primaryKey()

/** The same for events, whose ids begin with `evt_`. */
export const eventRef = word<string>({
  dataType: () => "blob",
  postgres: "uuid",
  toDriver: orNull(bytesOfEventId),
  fromDriver: shownEventId,
})

export const eventId = () => eventRef().primaryKey()

/** A primary key that is another text. It sorts by byte on both engines. */
export const key = () => plainText().primaryKey()

const MOST_CHARACTERS = 1000

/**
 * The first 1,000 characters of a foreign text, in a form that both databases store: without NUL
 * and without half a surrogate pair.
 */
export function short(text: string): string
export function short(text: string | null): string | null
export function short(text: string | null): string | null {
  return text === null ? null : text.replaceAll("\0", "").slice(0, MOST_CHARACTERS).toWellFormed()
}

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
