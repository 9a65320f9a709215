import { sql } from "drizzle-orm"
import * as postgres from "drizzle-orm/pg-core"
import * as sqlite from "drizzle-orm/sqlite-core"
import { settings } from "../core/config"
import { bytesOfId, idOfBytes, idOfUuid, uuidOfId, withoutPrefix, withPrefix } from "./id-codec"

/** Chosen once, before the first table is declared. One process knows one engine. */
export const engine = settings().database_url ? "postgres" : "sqlite"

/** A prepared statement hands NULL to the encoder too, so every encoder must let it through. */
const orNull =
  <From, To>(convert: (value: From) => To) =>
  (value: From): To =>
    value === null ? (null as To) : convert(value)

/** Most times of a row, and of a group of rows, are one and the same. */
const latest = { iso: "1970-01-01T00:00:00.000Z", milliseconds: 0 }

function parseTime(iso: string): number {
  if (iso === latest.iso) return latest.milliseconds
  const milliseconds = Date.parse(iso)
  if (Number.isNaN(milliseconds)) throw new TypeError(`"${iso}" is not a time`)
  latest.iso = iso
  latest.milliseconds = milliseconds
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

/** Milliseconds since 1970 in the database, ISO 8601 text in code: a row is already an answer. */
const timeCodec = {
  toDriver: orNull(parseTime),
  fromDriver: (milliseconds: number | string) => printTime(Number(milliseconds)),
}

/**
 * Text on both engines, on purpose. We never search inside JSON, and a `jsonb` column would
 * receive a text already encoded and encode it a second time.
 */
const jsonCodec = {
  dataType: () => "text",
  toDriver: orNull((value: unknown) => JSON.stringify(value)),
  fromDriver: (text: string): unknown => JSON.parse(text),
}

type Time = { data: string; driverData: number }
type Json = { data: unknown; driverData: string }
type Bytes = { data: Buffer; driverData: Uint8Array }

/** Keys sort by byte on both engines: a locale's collation may order them differently. */
const pgKey = postgres.customType<{ data: string; driverData: string }>({
  dataType: () => 'text COLLATE "C"',
})

type Id = { data: string; driverData: Uint8Array }
type PostgresId = { data: string; driverData: string }

const sqliteId = {
  id: sqlite.customType<Id>({
    dataType: () => "blob",
    toDriver: orNull(bytesOfId),
    fromDriver: idOfBytes,
  }),
  eventId: sqlite.customType<Id>({
    dataType: () => "blob",
    toDriver: orNull((id: string) => bytesOfId(withoutPrefix(id))),
    fromDriver: (bytes) => withPrefix(idOfBytes(bytes)),
  }),
}

const postgresId = {
  id: postgres.customType<PostgresId>({
    dataType: () => "uuid",
    toDriver: orNull(uuidOfId),
    fromDriver: idOfUuid,
  }),
  eventId: postgres.customType<PostgresId>({
    dataType: () => "uuid",
    toDriver: orNull((id: string) => uuidOfId(withoutPrefix(id))),
    fromDriver: (uuid) => withPrefix(idOfUuid(uuid)),
  }),
}

const onSqlite = {
  table: sqlite.sqliteTable,
  index: sqlite.index,
  uniqueIndex: sqlite.uniqueIndex,
  primaryKey: sqlite.primaryKey,
  text: () => sqlite.text(),
  key: () => sqlite.text().primaryKey(),
  ref: () => sqliteId.id(),
  eventRef: () => sqliteId.eventId(),
  int: () => sqlite.integer(),
  bool: () => sqlite.integer({ mode: "boolean" }),
  bytes: () => sqlite.blob({ mode: "buffer" }),
  position: () => sqlite.integer().notNull().default(0),
  time: sqlite.customType<Time>({ dataType: () => "integer", ...timeCodec }),
  json: sqlite.customType<Json>(jsonCodec),
}

const onPostgres = {
  table: postgres.pgTable,
  index: postgres.index,
  uniqueIndex: postgres.uniqueIndex,
  primaryKey: postgres.primaryKey,
  text: () => postgres.text(),
  key: () => pgKey().primaryKey(),
  ref: () => postgresId.id(),
  eventRef: () => postgresId.eventId(),
  int: () => postgres.bigint({ mode: "number" }), // exact to 2^53, as on SQLite
  bool: () => postgres.boolean(),
  bytes: postgres.customType<Bytes>({ dataType: () => "bytea", fromDriver: Buffer.from }),
  position: () =>
    postgres
      .bigint({ mode: "number" })
      .notNull()
      .default(sql`(pg_current_xact_id()::text)::bigint`),
  time: postgres.customType<Time>({ dataType: () => "bigint", ...timeCodec }),
  json: postgres.customType<Json>(jsonCodec),
}

/** Typed as SQLite throughout. What only one engine can do does not belong in this file. */
const words = engine === "sqlite" ? onSqlite : (onPostgres as unknown as typeof onSqlite)

export const { table, index, uniqueIndex, primaryKey, int, bool, bytes, time } = words

/** A UUIDv7 of ours: text in code, 16 bytes in the database. `""` sorts before all of them. */
export const { ref } = words

/** The same for events, whose ids begin with `evt_`. */
export const { eventRef } = words

/** A primary key that is another text. */
export const { key } = words

/**
 * The order of commits, filled in by the database: the transaction's number on Postgres, always 0
 * on SQLite, whose single writer makes ids in the order of their commits anyway.
 */
export const { position } = words

export const id = () => words.ref().primaryKey()

export const eventId = () => words.eventRef().primaryKey()

export const text = <T extends string = string>() => words.text().$type<T>()

export const json = <T>() => words.json().$type<T>()
