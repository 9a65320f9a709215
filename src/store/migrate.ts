import type { Database } from "bun:sqlite"
import type { SQL } from "bun"
import { log } from "../core/log"
import { millis } from "../core/time"
import { embedded, type Migration } from "./migrations"

/** Any number, as long as every node uses the same. */
const MIGRATION_LOCK = 727_001

const LEDGER = `CREATE TABLE IF NOT EXISTS belfry_migrations (
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

/** Applies what is missing, each migration whole or not at all. Returns the names of the new ones. */
export function migrateSqlite(writer: Database, list = embedded.sqlite): string[] {
  writer.run(LEDGER)
  const rows = writer.query("SELECT tag FROM belfry_migrations").all() as { tag: string }[]
  const missing = pending(list, rows)
  for (const migration of missing) {
    writer.transaction(() => {
      for (const statement of statements(migration)) writer.run(statement)
      const row = [migration.tag, millis()]
      writer.run("INSERT INTO belfry_migrations (tag, applied_at) VALUES (?, ?)", row)
    })()
  }
  return announce(missing)
}

/** What is missing, with nothing changed: not even the list of what was applied is made. */
export function pendingSqlite(reader: Database, list = embedded.sqlite): string[] {
  const ledger = "SELECT name FROM sqlite_master WHERE name = 'belfry_migrations'"
  if (reader.query(ledger).all().length === 0) return list.map(({ tag }) => tag)
  const rows = reader.query("SELECT tag FROM belfry_migrations").all() as { tag: string }[]
  return pending(list, rows).map(({ tag }) => tag)
}

/** The same on Postgres. */
export async function pendingPostgres(pool: SQL, list = embedded.postgres): Promise<string[]> {
  const [ledger] = await pool`SELECT to_regclass('belfry_migrations') AS oid`
  if (!ledger?.oid) return list.map(({ tag }) => tag)
  const rows = (await pool`SELECT tag FROM belfry_migrations`) as { tag: string }[]
  return pending(list, rows).map(({ tag }) => tag)
}

/**
 * Several nodes may start at once: each migration is applied by one, and the others wait for it at
 * the lock. The lock lasts for one transaction, so that it holds through a pooler, too.
 */
export async function migratePostgres(pool: SQL, list = embedded.postgres): Promise<string[]> {
  const applied: Migration[] = []
  if ((await pendingPostgres(pool, list)).length === 0) return []
  for (;;) {
    const next = await pool.begin((tx) => applyNext(tx, list))
    if (!next) return announce(applied)
    applied.push(next)
  }
}

async function applyNext(tx: SQL, list: Migration[]): Promise<Migration | undefined> {
  await tx`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`
  await tx.unsafe(LEDGER)
  const rows = (await tx`SELECT tag FROM belfry_migrations`) as { tag: string }[]
  const [next] = pending(list, rows)
  if (!next) return undefined
  for (const statement of statements(next)) await tx.unsafe(statement)
  await tx`INSERT INTO belfry_migrations (tag, applied_at) VALUES (${next.tag}, ${millis()})`
  return next
}

function pending(list: Migration[], applied: { tag: string }[]): Migration[] {
  const known = new Set(list.map(({ tag }) => tag))
  const stranger = applied.find(({ tag }) => !known.has(tag))
  if (stranger) throw new SchemaTooNew(stranger.tag)

  const done = new Set(applied.map(({ tag }) => tag))
  return list.filter(({ tag }) => !done.has(tag))
}

const statements = ({ sql }: Migration) =>
  sql
    .split("--> statement-breakpoint")
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "")

function announce(applied: Migration[]): string[] {
  const tags = applied.map(({ tag }) => tag)
  if (tags.length > 0) log.info("migrations applied", { tags })
  return tags
}
