import { Database } from "bun:sqlite"
import { applySqlite } from "./apply-migrations"
import { embedded } from "./migrations"
import { tablesIn } from "./shared-tables"

/**
 * How the schema of an SQLite file differs from the one that its migrations make, each as the end of "the database …".
 * Tables and indexes beside those are not told of: another program, such as Litestream, may have made them.
 */
export function schemaDifferences(database: Database, migrations: string[]): string[] {
  const known = embedded.sqlite.map(({ tag }) => tag)
  const stranger = migrations.find((tag) => !known.includes(tag))
  if (stranger !== undefined) return [`has the migration "${stranger}", which is not known here`]
  const lacking = known.slice(0, migrations.length).find((tag) => !migrations.includes(tag))
  if (lacking !== undefined) return [`lacks the migration "${lacking}", but has later ones`]
  using made = new Database(":memory:", { strict: true })
  applySqlite(made, embedded.sqlite.slice(0, migrations.length))
  const there = new Set(tablesIn(database))
  const tables = tablesIn(made).flatMap((table) =>
    there.has(table)
      ? columnDifferences(table, columnsOf(made, table), columnsOf(database, table))
      : [`lacks the table ${table}`],
  )
  const indexes = objectDifferences(objectsOf(made, "index"), objectsOf(database, "index"))
  return [...tables, ...indexes, ...foreignCode(made, database)]
}

type Columns = Map<string, string>

/** By name, with type, default and all that a column has. */
function columnsOf(database: Database, table: string): Columns {
  const rows = database.query(`PRAGMA table_xinfo("${table}")`).all() as { name: string }[]
  const facts = ({ cid: _, ...rest }: { name: string; cid?: number }) => JSON.stringify(rest)
  return new Map(rows.map((row) => [row.name, facts(row)]))
}

function columnDifferences(table: string, wanted: Columns, found: Columns): string[] {
  const strangers = [...found.keys()].filter((name) => !wanted.has(name))
  const others = [...wanted].flatMap(([name, facts]) => {
    if (!found.has(name)) return [`lacks the column ${table}.${name}`]
    return found.get(name) === facts ? [] : [`has another column ${table}.${name}`]
  })
  return [...others, ...strangers.map((name) => `has the unknown column ${table}.${name}`)]
}

/** What a database has of a kind, by name: its statement, whatever its spaces are. */
function objectsOf(database: Database, type: "index" | "trigger" | "view"): Map<string, string> {
  const named = "SELECT name, sql FROM sqlite_schema WHERE type = ? AND sql IS NOT NULL"
  const rows = database.query(named).values(type) as [string, string][]
  return new Map(rows.map(([name, sql]) => [name, sql.replaceAll(/\s+/g, " ")]))
}

const objectDifferences = (wanted: Map<string, string>, found: Map<string, string>): string[] =>
  [...wanted].flatMap(([name, sql]) => {
    if (!found.has(name)) return [`lacks the index ${name}`]
    return found.get(name) === sql ? [] : [`has another index ${name}`]
  })

/** A trigger or a view would act as soon as the server writes or reads. */
const foreignCode = (made: Database, database: Database): string[] =>
  (["trigger", "view"] as const).flatMap((type) => {
    const known = objectsOf(made, type)
    return [...objectsOf(database, type)]
      .filter(([name, sql]) => known.get(name) !== sql)
      .map(([name]) => `has the unknown ${type} ${name}`)
  })
