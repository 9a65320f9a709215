import { Database } from "bun:sqlite"
import type { Settings } from "../../core/config"
import { LOST_EVENTS } from "../../events/lost-events"
import { copyToPostgres } from "../../store/copy-rows"
import { BOOT_PATIENCE_MS, openStore } from "../../store/open"
import { connect } from "../../store/postgres-pool"
import type { PostgresConnection } from "../../store/shared-tables"
import { lostEventsAt } from "./copy-changes"

interface FillOptions {
  onProgress?: (progress: { step: "copying"; done: number; total: number | null }) => void
  signal?: AbortSignal
}

/**
 * Copies an SQLite file of our schema into the empty Postgres database of the settings, in one
 * transaction: all rows, or none.
 */
export async function fillPostgres(
  path: string,
  settings: Settings,
  { onProgress, signal }: FillOptions,
): Promise<void> {
  const { database_url, database_direct_url } = settings
  await (await openStore(settings, { patience_ms: BOOT_PATIENCE_MS })).close() // makes the tables
  const source = new Database(path, { readonly: true, strict: true })
  const pool = connect(database_direct_url ?? database_url ?? "", { max: 1, prepare: false })
  let done = 0
  const onRows = (_: string, rows: number) => {
    signal?.throwIfAborted()
    done += rows
    onProgress?.({ step: "copying", done, total: null })
  }
  try {
    await pool.begin(async (tx) => {
      await copyToPostgres(source, tx, { onRows })
      await placeLostEvents(tx)
    })
  } finally {
    source.close()
    await pool.close()
  }
}

/** The copied events got the position of this transaction: readers of lost ones go on behind it. */
async function placeLostEvents(tx: PostgresConnection) {
  const value = `SELECT value FROM instance_values WHERE name = '${LOST_EVENTS}'`
  const [kept] = await tx.unsafe(value)
  const [last] = await tx.unsafe("SELECT coalesce(max(position), 0) AS position FROM events")
  if (!kept) return
  const gaps = lostEventsAt(kept.value, Number(last?.position ?? 0))
  const set = `UPDATE instance_values SET value = $1 WHERE name = '${LOST_EVENTS}'`
  await tx.unsafe(set, [gaps])
}
