import { Database } from "bun:sqlite"
import { drizzle } from "drizzle-orm/bun-sqlite"
import { rawSqlite } from "./statements"
import type { Reader } from "./store"

/** What a `Reader` has beside its queries. */
export type ReaderAccess = Pick<Reader, "identity" | "isAlone" | "onChanged" | "changeCount">

/** Of a connection that no store stands around: it hears of no change. */
export const apart = (isAlone: boolean): ReaderAccess => ({
  identity: {},
  isAlone,
  onChanged: () => () => {},
  changeCount: () => undefined,
})

/** Pages of the connection's cache: what it reads is mostly read once. */
const CACHE_KB = 8192

/**
 * Reads an SQLite file as it is at this moment, whatever is written meanwhile: on a connection of its own,
 * in one transaction. The write-ahead log cannot begin anew until `look` ends, so that should take seconds.
 */
export async function readSnapshot<Result>(
  path: string,
  access: ReaderAccess,
  look: (db: Reader) => Promise<Result>,
): Promise<Result> {
  const connection = new Database(path, { readonly: true, strict: true })
  try {
    connection.run(`PRAGMA cache_size = -${CACHE_KB}`)
    connection.run("BEGIN")
    connection.query("SELECT count(*) FROM sqlite_schema").get() // the moment is that of the first read
    const db: Reader = Object.assign(drizzle(connection) as unknown as Reader, access)
    rawSqlite.set(db, connection)
    return await look(db)
  } finally {
    if (connection.inTransaction) connection.run("ROLLBACK")
    connection.close()
  }
}
