import type { Database } from "bun:sqlite"
import type { SQL } from "bun"
import { millis } from "../core/time"
import { embedded, type Migration } from "./migrations"

/** The list of the migrations that a database has. */
export const LEDGER = `CREATE TABLE IF NOT EXISTS belfry_migrations (
  tag text PRIMARY KEY NOT NULL, applied_at bigint NOT NULL)`

/** The database was made by a later version, whose rows this one would misread. */
export class SchemaTooNew extends Error {
  constructor(tag: string) {
    super(
      `The database has the migration "${tag}", which this version of belfry does not know. ` +
        "Run the newer version, or restore a backup from before the upgrade.",
    )
    this.name = "SchemaTooNew"
  }
}

/**
 * Applies what is missing to an SQLite file, each migration whole or not at all, without a line in the log.
 * Returns the new ones.
 */
export function applySqlite(writer: Database, list = embedded.sqlite): Migration[] {
  writer.run(LEDGER)
  const rows = writer.query("SELECT tag FROM belfry_migrations").all() as { tag: string }[]
  const missing = pending(list, rows)
  for (const migration of missing) {
    writer.transaction(() => {
      for (const statement of statementsOf(migration)) writer.run(statement)
      const row = [migration.tag, millis()]
      writer.run("INSERT INTO belfry_migrations (tag, applied_at) VALUES (?, ?)", row)
    })()
  }
  return missing
}

/** What is missing, oldest first. Throws SchemaTooNew for a database of a later version. */
export function pending(list: Migration[], applied: { tag: string }[]): Migration[] {
  const known = new Set(list.map(({ tag }) => tag))
  const foreign = applied.find(({ tag }) => !known.has(tag))
  if (foreign) throw new SchemaTooNew(foreign.tag)

  const done = new Set(applied.map(({ tag }) => tag))
  return list.filter(({ tag }) => !done.has(tag))
}

/** What a Postgres database lacks, oldest first, with nothing changed. Throws SchemaTooNew. */
export async function pendingPostgres(pool: SQL, list = embedded.postgres): Promise<string[]> {
  const [ledger] = await pool`SELECT to_regclass('belfry_migrations') AS oid`
  if (!ledger?.oid) return list.map(({ tag }) => tag)
  const rows = (await pool`SELECT tag FROM belfry_migrations`) as { tag: string }[]
  return pending(list, rows).map(({ tag }) => tag)
}

/** The statements of a migration, in their order. */
export const statementsOf = ({ sql }: Migration) =>
  sql
    .split("--> statement-breakpoint")
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "")
