import { Column } from "drizzle-orm"
import * as sqlite from "drizzle-orm/sqlite-core"
import { bytesOfId, notAnId, shownId } from "./id-bytes"

/**
 * One declaration serves both engines: columns encode for SQLite, and `postgres.ts` changes the few
 * values that Postgres wants otherwise. A decoder takes what either driver gives.
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
 * on SQLite, whose single writer makes ids in the order of their commits anyway. No other column
 * has a default.
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
  toDriver: orNull((id: string) => bytesOfId(withoutPrefix(id))),
  fromDriver: (value: Uint8Array | string) => withPrefix(shownId(value)),
})

export const eventId = () => eventRef().primaryKey()

/** A primary key that is another text. It sorts by byte on both engines. */
export const key = () => plainText().primaryKey()

const EVENT = "evt_"

/** Events are shown with a prefix, which the database does not repeat in every row. */
function withoutPrefix(event_id: string): string {
  if (event_id === "") return ""
  if (!event_id.startsWith(EVENT)) throw notAnId(event_id)
  return event_id.slice(EVENT.length)
}

const withPrefix = (id: string): string => (id === "" ? "" : EVENT + id)
