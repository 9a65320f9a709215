import { rawSqlite } from "./statements"
import type { Store } from "./store"

/** Pages of the SQLite file: those that hold nothing, and all of them. */
export interface FilePages {
  free: number
  all: number
}

/** Undefined on Postgres, which uses the space of deleted rows again by itself. */
export function filePages(store: Store): FilePages | undefined {
  const database = rawSqlite.get(store.read)
  if (!database) return undefined
  const { n: all } = database.query("SELECT page_count AS n FROM pragma_page_count").get() as Count
  const { n: free } = database
    .query("SELECT freelist_count AS n FROM pragma_freelist_count")
    .get() as Count
  return { free, all }
}

interface Count {
  n: number
}

/**
 * Moves up to so many pages from the end of the SQLite file into free ones, and cuts the end off, in a
 * transaction of its own. The file becomes shorter with the next checkpoint. Resolves with the number of
 * pages, 0 where no page is free or the database is on Postgres.
 */
export function cutFile(store: Store, pages: number): Promise<number> {
  if (!rawSqlite.has(store.read)) return Promise.resolve(0)
  return store.tx(async (tx) => {
    // One row for each page: the statement works only as far as its rows are read.
    const statement = rawSqlite.get(tx)?.query(`PRAGMA incremental_vacuum(${Math.floor(pages)})`)
    return statement?.all().length ?? 0
  })
}
