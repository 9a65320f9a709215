import type { Settings } from "../../core/config"
import { LOST_EVENTS } from "../../events/lost-events"
import { fillPostgres } from "../../store/fill-postgres"
import { BOOT_PATIENCE_MS, openStore } from "../../store/open"
import type { PostgresConnection } from "../../store/shared-tables"
import { lostEventsAt } from "./copy-changes"
import { requireNoRows } from "./restore-target"

interface MoveOptions {
  onProgress?: (progress: { step: "copying"; done: number; total: number | null }) => void
  signal?: AbortSignal
  /** Puts the files in their places, when all rows are copied and nothing counts yet. */
  placeRest: () => Promise<void>
}

/** Copies an SQLite file of our schema into the empty Postgres database of the settings: all rows, or none. */
export async function moveToPostgres(
  path: string,
  settings: Settings,
  { onProgress, signal, placeRest }: MoveOptions,
): Promise<void> {
  const { database_url, database_direct_url } = settings
  await (await openStore(settings, { patience_ms: BOOT_PATIENCE_MS })).close() // makes the tables
  let done = 0
  const onRows = (rows: number) => {
    signal?.throwIfAborted()
    done += rows
    onProgress?.({ step: "copying", done, total: null })
  }
  const url = database_direct_url ?? database_url ?? ""
  const finish = async (tx: PostgresConnection) => {
    await placeLostEvents(tx)
    signal?.throwIfAborted()
    await placeRest() // nobody else is in this database, so its transaction may wait
  }
  await fillPostgres(path, url, { requireEmpty: requireNoRows, onRows, finish })
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
