import { sleep } from "../core/time"
import { rawSqlite } from "../store/statements"
import type { Store } from "../store/store"

/** Pages of one transaction, 4 KB each. It takes a millisecond. */
const STEP_PAGES = 64

/** Between two transactions, so that sends never wait for more than one of them. */
const PAUSE_MS = 10

/** What stays free for the rows to come: a share of the file, or so many pages in a small file. */
const SPARE_SHARE = 0.05
const SPARE_PAGES = 2048

/** Steps of one call, some minutes at most: what is left comes with the next one. */
const MOST_STEPS = 20_000

interface GiveBackOptions {
  /** Nothing stays free: the disk is almost full. */
  everything?: boolean
  /** Ends the call between two steps. */
  signal?: AbortSignal | undefined
}

/**
 * Gives the space of deleted rows back to the file system, a few pages at a time, and leaves some for
 * new rows. Resolves with the number of bytes by which the file became shorter. On Postgres it does nothing: autovacuum frees rows there.
 */
export async function giveBack(
  store: Store,
  { everything = false, signal }: GiveBackOptions = {},
): Promise<number> {
  const before = filePages(store)
  if (!before) return 0
  const spare = everything ? 0 : Math.max(SPARE_PAGES, Math.ceil(before.all * SPARE_SHARE))
  for (let step = 0; step < MOST_STEPS && !signal?.aborted; step++) {
    const free = filePages(store)?.free ?? 0
    if (free <= spare) break
    const cut = await cutFile(store, Math.min(STEP_PAGES, free - spare))
    if (cut === 0) break // a file of an earlier version, which cannot be cut
    await sleep(PAUSE_MS)
  }
  return (before.all - (filePages(store)?.all ?? 0)) * PAGE_BYTES
}

/** SQLite's own size, which no file of ours changes. */
const PAGE_BYTES = 4096

interface FilePages {
  free: number
  all: number
}

/** Pages of the SQLite file: those that hold nothing, and all of them. Undefined on Postgres. */
export function filePages(store: Store): FilePages | undefined {
  const database = rawSqlite.get(store.read)
  const pages = `SELECT freelist_count AS free, page_count AS "all" FROM pragma_freelist_count, pragma_page_count`
  return database?.query<FilePages, []>(pages).get() ?? undefined
}

/** Moves pages from the end of the file into free ones, and cuts it off. Resolves with the number of pages. */
const cutFile = (store: Store, pages: number): Promise<number> =>
  store.tx(async (tx) => {
    // One row for each page: the statement works only as far as its rows are read.
    const statement = rawSqlite.get(tx)?.query(`PRAGMA incremental_vacuum(${pages})`)
    return statement?.all().length ?? 0
  })
