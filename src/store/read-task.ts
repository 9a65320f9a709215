import { Database } from "bun:sqlite"

// What another thread does for heavy reads.

export interface ReadOrder {
  /** The SQLite file. */
  path: string
  text: string
  values: unknown[]
}

/** Pages of the connection's cache: what it reads is mostly read once. */
const CACHE_KB = 8192

const readers = new Map<string, Database>()

/** The rows of a select, as lists of values. It sees what is committed when it begins. Throws SQLite's error. */
export function readRows({ path, text, values }: ReadOrder): unknown[][] {
  return reader(path)
    .query(text)
    .values(...(values as never[]))
}

/** A connection that cannot write, and so never copies the log. */
function reader(path: string): Database {
  const known = readers.get(path)
  if (known) return known
  const connection = new Database(path, { readonly: true, strict: true })
  connection.run(`PRAGMA cache_size = -${CACHE_KB}`)
  readers.set(path, connection)
  return connection
}

export function closeReader(path: string): void {
  readers.get(path)?.close()
  readers.delete(path)
}
