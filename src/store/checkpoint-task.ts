import { Database } from "bun:sqlite"

/**
 * Copies what the WAL holds into the database file, as far as no reader still needs it where it is.
 * For a thread of its own: it writes nearly as much as the commits did, and waits for two fsyncs.
 * Throws what SQLite says; a writer that is at the same work already is no error.
 */
export function checkpointFile(path: string): void {
  const database = new Database(path, { readwrite: true, create: false, strict: true })
  try {
    database.query("PRAGMA wal_checkpoint(PASSIVE)").get()
  } finally {
    database.close()
  }
}
