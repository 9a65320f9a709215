import type { Database } from "bun:sqlite"
import type { SQL } from "bun"
import { bytesOfId, uuidOfBytes } from "../core/ids"

/** A connection to Postgres, or a transaction of one. */
export type PostgresConnection = Pick<SQL, "unsafe">

type SqliteValue = string | number | Uint8Array | null

interface SharedColumn {
  name: string
  /** In Postgres. */
  type: string
  /** The order of commits: the database fills it in, and it means nothing in another one. */
  is_position: boolean
  toSqlite: (value: never) => SqliteValue
  toPostgres: (value: never) => unknown
  /** Its values may be long. */
  is_long: boolean
}

/** A table that both engines have with the same columns. */
export interface SharedTable {
  name: string
  columns: SharedColumn[]
  /** Names of the primary key's columns. */
  key: string[]
}

/** Which migrations were applied: each engine has its own list. */
const LEDGER = "belfry_migrations"

const asItIs = <Value>(value: Value): Value => value

/** By the types that `store/columns.ts` uses. */
const CONVERSIONS: Record<string, Pick<SharedColumn, "toSqlite" | "toPostgres" | "is_long">> = {
  uuid: { toSqlite: bytesOfId, toPostgres: uuidOfBytes, is_long: false },
  bigint: { toSqlite: Number, toPostgres: asItIs, is_long: false },
  boolean: {
    toSqlite: (value: boolean) => (value ? 1 : 0),
    toPostgres: (value: number) => value === 1,
    is_long: false,
  },
  bytea: { toSqlite: asItIs, toPostgres: asItIs, is_long: true },
  text: { toSqlite: asItIs, toPostgres: asItIs, is_long: true },
}

/**
 * Every table of an SQLite file with its columns in Postgres, each after those that it refers to. Throws
 * where the two databases do not have the same tables and columns: then one of them needs a migration.
 */
export async function sharedTables(
  sqlite: Database,
  postgres: PostgresConnection,
): Promise<SharedTable[]> {
  const columns = await columnsOf(postgres)
  const names = tablesIn(sqlite).filter((name) => name !== LEDGER)
  const shared = names.map((name) => sharedTable(sqlite, name, columns.get(name) ?? []))
  const foreign = [...columns.keys()].filter((name) => name !== LEDGER && !names.includes(name))
  if (foreign.length > 0) throw differing(foreign.join(", "))
  return inOrderOfReferences(sqlite, shared)
}

/** Tables of an SQLite file, by name. */
export function tablesIn(database: Database): string[] {
  const named =
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY 1"
  return database
    .query(named)
    .values()
    .map(([name]) => String(name))
}

interface PostgresColumn {
  table_name: string
  column_name: string
  data_type: string
  column_default: string | null
}

async function columnsOf(postgres: PostgresConnection): Promise<Map<string, PostgresColumn[]>> {
  const rows: PostgresColumn[] = await postgres.unsafe(
    `SELECT table_name, column_name, data_type, column_default FROM information_schema.columns
      WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position`,
  )
  return Map.groupBy(rows, ({ table_name }) => table_name)
}

interface SqliteColumn {
  name: string
  /** 0 where it is no part of the primary key. */
  pk: number
}

function sharedTable(sqlite: Database, name: string, found: PostgresColumn[]): SharedTable {
  const own = sqlite.query<SqliteColumn, []>(`PRAGMA table_info("${name}")`).all()
  const columns = found.map(({ column_name, data_type, column_default }) => {
    const conversion = CONVERSIONS[data_type]
    if (!conversion) throw new Error(`${name}.${column_name} has the type ${data_type}`)
    return {
      name: column_name,
      type: data_type,
      // Other columns have plain defaults, and their values are copied.
      is_position: column_default?.includes("pg_current_xact_id") ?? false,
      ...conversion,
    }
  })
  const sorted = (list: { name: string }[]) =>
    list
      .map((one) => one.name)
      .sort()
      .join()
  if (sorted(own) !== sorted(columns)) throw differing(name)
  const key = own.filter(({ pk }) => pk > 0).sort((one, other) => one.pk - other.pk)
  return { name, columns, key: key.map((column) => column.name) }
}

const differing = (tables: string) =>
  new Error(
    `The two databases do not have the same columns (${tables}). Run \`belfry migrate\` with this version first.`,
  )

function inOrderOfReferences(sqlite: Database, tables: SharedTable[]): SharedTable[] {
  const refersTo = (name: string) =>
    sqlite
      .query<{ table: string }, []>(`PRAGMA foreign_key_list("${name}")`)
      .all()
      .map(({ table }) => table)
      .filter((other) => other !== name)
  const sorted: SharedTable[] = []
  const add = (table: SharedTable) => {
    if (sorted.includes(table)) return
    const first = refersTo(table.name)
    for (const other of tables) if (first.includes(other.name)) add(other)
    sorted.push(table)
  }
  for (const table of tables) add(table)
  return sorted
}
