import { Database } from "bun:sqlite"
import { closeSync, openSync, statSync } from "node:fs"
import { faultOf } from "../core/faults"
import { syncPath } from "../core/small-file"
import { applySqlite, pendingPostgres } from "./apply-migrations"
import { copyFromPostgres } from "./copy-rows"
import { checkFile } from "./file-tasks"
import { embedded } from "./migrations"
import { type BlobFolder, blobsNamedIn } from "./named-blobs"
import { onConnection } from "./postgres-pool"
import { tablesIn } from "./shared-tables"

// What another thread does for a backup, because it would hold the event loop.

export interface CopyOrder {
  /** The SQLite file of the server, which may be running, or the URL of its Postgres. */
  from: string
  /** A file that must not exist yet. */
  to: string
}

/**
 * Copies the SQLite file as it stands at one moment, while its writer goes on. The copy is made by a
 * connection of its own, compact, of mode 0600, and synced. Throws SQLite's error.
 */
export function copySqlite({ from, to }: CopyOrder): void {
  closeSync(openSync(to, "wx", 0o600)) // before SQLite does, whose files other users may read
  const source = new Database(from, { readonly: true, strict: true })
  try {
    source.run("VACUUM INTO ?", [to])
  } finally {
    source.close()
  }
  syncPath(to)
}

/**
 * Copies a Postgres database, as one snapshot sees it, into an SQLite file of its own with the same
 * schema, which may be that of an earlier version. The file has mode 0600, and is synced. Throws what Postgres or SQLite says.
 */
export async function copyPostgres({ from, to }: CopyOrder): Promise<void> {
  closeSync(openSync(to, "wx", 0o600))
  const target = new Database(to, { strict: true })
  try {
    target.run("PRAGMA auto_vacuum = INCREMENTAL")
    target.run("PRAGMA journal_mode = OFF") // what a crash leaves is thrown away whole
    target.run("PRAGMA synchronous = OFF")
    await onConnection(from, async (pool) => {
      const missing = await pendingPostgres(pool)
      const applied = embedded.sqlite.filter(({ tag }) => !missing.includes(tag))
      applySqlite(target, applied)
      await pool.begin("ISOLATION LEVEL REPEATABLE READ READ ONLY", (tx) =>
        copyFromPostgres(tx, target),
      )
    })
  } finally {
    target.close()
  }
  syncPath(to)
}

/** What was found in a copy. */
export interface CopyFacts {
  /** As SQLite words them; an empty list is a sound file. */
  faults: string[]
  rows: Record<string, number>
  /** Oldest first. */
  migrations: string[]
  /** How its schema differs from the one that its migrations make. */
  schema: string[]
  /** Sealed values of the instance, by name. Opening one shows that a master key is the right one. */
  sealed: [name: string, value: string][]
  master_key_id: string | null
  /** While a rotation goes on: of the key that takes its place. Values are sealed with either. */
  next_master_key_id: string | null
  /** The files that rows name, whether they are there or not, and what those that are there take. */
  named: Record<BlobFolder, number>
  blob_bytes: number
}

export interface InspectOrder {
  path: string
  how: "quick" | "full"
  /** Of the files that rows name. */
  folders: Record<BlobFolder, string>
}

/** Opens a copy as a restore would, and checks it: every page, the rows of each table, the migrations and what they make. */
export function inspectCopy(order: InspectOrder): CopyFacts {
  try {
    const faults = checkFile(order)
    return faults.length > 0 ? damaged(faults) : soundFacts(order)
  } catch (error) {
    if (!(error instanceof Error) || faultOf(error) !== "damaged") throw error
    return damaged([error.message])
  }
}

const damaged = (faults: string[]): CopyFacts => ({
  faults,
  rows: {},
  migrations: [],
  schema: [],
  sealed: [],
  master_key_id: null,
  next_master_key_id: null,
  named: { blobs: 0, "inbound-blobs": 0 },
  blob_bytes: 0,
})

function soundFacts({ path, folders }: InspectOrder): CopyFacts {
  using database = new Database(path, { readonly: true, strict: true })
  const named = { blobs: 0, "inbound-blobs": 0 }
  let blob_bytes = 0
  for (const blob of blobsNamedIn(path, folders)) {
    named[blob.folder] += 1
    blob_bytes += statSync(blob.path, { throwIfNoEntry: false })?.size ?? 0
  }
  return { faults: [], ...factsOf(database), named, blob_bytes }
}

function factsOf(database: Database): Omit<CopyFacts, "faults" | "named" | "blob_bytes"> {
  const rows: Record<string, number> = {}
  for (const table of tablesIn(database)) {
    const [count] = database.query(`SELECT count(*) FROM "${table}"`).values()[0] ?? []
    rows[table] = Number(count)
  }
  const textsOf = (sql: string) => database.query(sql).values() as [string, string][]
  const values = "instance_values" in rows ? textsOf("SELECT name, value FROM instance_values") : []
  const instanceValue = (wanted: string) => values.find(([name]) => name === wanted)?.[1] ?? null
  const ledger = "SELECT tag FROM belfry_migrations ORDER BY applied_at, tag"
  const migrations = "belfry_migrations" in rows ? textsOf(ledger).map(([tag]) => tag) : []
  return {
    rows,
    migrations,
    schema: schemaDifferences(database, migrations),
    sealed: values.filter(([, value]) => value.startsWith("v1.")),
    master_key_id: instanceValue("master_key_id"),
    next_master_key_id: instanceValue("next_master_key_id"),
  }
}

/**
 * How the schema of an SQLite file differs from the one that its migrations make, each as the end of "the database …".
 * Tables and indexes beside those are not told of: another program, such as Litestream, may have made them.
 */
function schemaDifferences(database: Database, migrations: string[]): string[] {
  const known = embedded.sqlite.map(({ tag }) => tag)
  const foreign = migrations.find((tag) => !known.includes(tag))
  if (foreign !== undefined) return [`has the migration "${foreign}", which is not known here`]
  const lacking = known.slice(0, migrations.length).find((tag) => !migrations.includes(tag))
  if (lacking !== undefined) return [`lacks the migration "${lacking}", but has later ones`]
  using made = new Database(":memory:", { strict: true })
  applySqlite(made, embedded.sqlite.slice(0, migrations.length))
  const [wanted, found] = [partsOf(made), partsOf(database)]
  const lost = [...wanted].flatMap(([part, { of, is }]) => {
    if (!found.has(of)) return part === of ? [`lacks the ${part}`] : []
    const there = found.get(part)
    if (!there) return [`lacks the ${part}`]
    return there.is === is ? [] : [`has another ${part}`]
  })
  const unknown = [...found].filter(
    ([part, { of, acts }]) => !wanted.has(part) && (acts || (part !== of && wanted.has(of))),
  )
  return [...lost, ...unknown.map(([part]) => `has the unknown ${part}`)]
}

interface SchemaPart {
  /** What it is a part of: the table of a column, otherwise itself. */
  of: string
  /** All that it has, whatever its spaces are. */
  is: string
  /** A trigger or a view would act as soon as the server writes or reads. */
  acts?: boolean
}

/** Tables, columns, indexes, triggers and views of a database, by kind and name. */
function partsOf(database: Database): Map<string, SchemaPart> {
  const parts = new Map<string, SchemaPart>()
  for (const table of tablesIn(database)) {
    const of = `table ${table}`
    parts.set(of, { of, is: table })
    type Column = { cid: number; name: string }
    const columns = database.query<Column, []>(`PRAGMA table_xinfo("${table}")`).all()
    for (const { cid: _, ...rest } of columns)
      parts.set(`column ${table}.${rest.name}`, { of, is: JSON.stringify(rest) })
  }
  const others =
    "SELECT type, name, sql FROM sqlite_schema WHERE type <> 'table' AND sql IS NOT NULL"
  for (const [type, name, sql] of database.query(others).values() as string[][]) {
    const of = `${type} ${name}`
    parts.set(of, { of, is: String(sql).replaceAll(/\s+/g, " "), acts: type !== "index" })
  }
  return parts
}
