import type { Database } from "bun:sqlite"
import type { SQL } from "bun"
import { log } from "../core/log"
import { millis } from "../core/time"
import { applySqlite, LEDGER, pending, pendingPostgres, statementsOf } from "./apply-migrations"
import { embedded, type Migration } from "./migrations"
import { onConnection } from "./postgres-pool"

/** Any number, as long as every node uses the same. */
const MIGRATION_LOCK = 727_001

/** Applies what is missing, each migration whole or not at all. Returns the names of the new ones. */
export const migrateSqlite = (writer: Database, list = embedded.sqlite): string[] =>
  announce(applySqlite(writer, list))

/** What is missing, with nothing changed: not even the list of what was applied is made. */
export function pendingSqlite(reader: Database, list = embedded.sqlite): string[] {
  const ledger = "SELECT name FROM sqlite_master WHERE name = 'belfry_migrations'"
  if (reader.query(ledger).all().length === 0) return list.map(({ tag }) => tag)
  const rows = reader.query("SELECT tag FROM belfry_migrations").all() as { tag: string }[]
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

/** One transaction on a connection of its own. Until its end no other one applies a migration. */
export const withoutMigrations = <Result>(
  url: string,
  act: (tx: SQL) => Promise<Result>,
): Promise<Result> =>
  onConnection(url, (pool) =>
    pool.begin(async (tx) => {
      await lockMigrations(tx)
      return act(tx)
    }),
  )

async function lockMigrations(tx: SQL): Promise<void> {
  await tx`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`
}

async function applyNext(tx: SQL, list: Migration[]): Promise<Migration | undefined> {
  await lockMigrations(tx)
  await tx.unsafe(LEDGER)
  const rows = (await tx`SELECT tag FROM belfry_migrations`) as { tag: string }[]
  const [next] = pending(list, rows)
  if (!next) return undefined
  for (const statement of statementsOf(next)) await tx.unsafe(statement)
  await tx`INSERT INTO belfry_migrations (tag, applied_at) VALUES (${next.tag}, ${millis()})`
  return next
}

function announce(applied: Migration[]): string[] {
  const tags = applied.map(({ tag }) => tag)
  if (tags.length > 0) log.info("migrations applied", { tags })
  return tags
}
