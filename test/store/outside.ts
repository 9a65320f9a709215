import { Database } from "bun:sqlite"
import { join } from "node:path"
import { SQL } from "bun"
import type { TestStore } from "../harness/store"

/** A connection of somebody else to the database of a test, for what a `Store` does not offer. */
export interface Outside extends AsyncDisposable {
  rows(text: string): Promise<Record<string, unknown>[]>
}

/** On SQLite it can only read: the writer is the store's alone. */
export function outside(test: Pick<TestStore, "folder" | "database_url">): Outside {
  return test.database_url === null
    ? besideSqlite(join(test.folder, "test.db"))
    : besidePostgres(test.database_url)
}

function besideSqlite(path: string): Outside {
  const database = new Database(path)
  database.run("PRAGMA query_only = ON")
  return {
    rows: async (text) => database.query(text).all() as Record<string, unknown>[],
    [Symbol.asyncDispose]: async () => database.close(),
  }
}

/** One connection, so that BEGIN and what follows meet. */
function besidePostgres(url: string): Outside {
  const connection = new SQL(url, { max: 1 })
  return {
    rows: async (text) => [...(await connection.unsafe(text))] as Record<string, unknown>[],
    [Symbol.asyncDispose]: () => connection.close(),
  }
}
