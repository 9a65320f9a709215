import { Database } from "bun:sqlite"
import { copyToPostgres } from "./copy-rows"
import { lockMigrations } from "./migrate"
import { onConnection } from "./postgres-pool"
import type { PostgresConnection } from "./shared-tables"

interface FillOptions {
  /** Throws where there are rows already. Nobody else fills the database until all is over. */
  requireEmpty: (tx: PostgresConnection) => Promise<void>
  /** Hears of each part that was copied. What it throws ends the copying. */
  onRows: (rows: number) => void
  /** Changes what was copied, before it counts. */
  finish: (tx: PostgresConnection) => Promise<void>
}

/**
 * Copies an SQLite file of our schema into a Postgres database that has the same tables without rows, in
 * one transaction: all rows, or none.
 */
export async function fillPostgres(
  path: string,
  url: string,
  { requireEmpty, onRows, finish }: FillOptions,
) {
  const source = new Database(path, { readonly: true, strict: true })
  try {
    await onConnection(url, (pool) =>
      pool.begin(async (tx) => {
        await lockMigrations(tx)
        await requireEmpty(tx)
        await copyToPostgres(source, tx, onRows)
        await finish(tx)
      }),
    )
  } finally {
    source.close()
  }
}
