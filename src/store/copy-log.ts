import { Database } from "bun:sqlite"

/** Each finds what was written during the one before: a tenth of it, at the fullest load. */
const MOST_PASSES = 8

/** How long the write-ahead log is, and how many of its pages the database file has already. */
export interface LogState {
  busy: number
  log: number
  checkpointed: number
}

/**
 * Copies the write-ahead log of the SQLite file at `path` into that file, while its writer goes on
 * in another thread, which it never makes wait. SQLite syncs the file only after a pass that ends
 * with nothing left, and that sync is the longest part: hence the short passes behind the long one.
 * The connection ends with the call: one that stayed would outlive its store. Throws SQLite's error
 * when the disk refuses.
 */
export function copyLog(path: string): void {
  const database = new Database(path, { readwrite: true, strict: true })
  try {
    database.run("PRAGMA synchronous = FULL")
    using pass = database.prepare<LogState, []>("PRAGMA wal_checkpoint(PASSIVE)")
    using count = database.prepare<LogState, []>("PRAGMA wal_checkpoint(NOOP)")
    let before = -1
    for (let number = 0; number < MOST_PASSES; number++) {
      if (pass.get()?.busy) return
      const { log = 0, checkpointed = 0 } = count.get() ?? {}
      if (checkpointed === log || checkpointed <= before) return
      before = checkpointed
    }
  } finally {
    database.close()
  }
}
