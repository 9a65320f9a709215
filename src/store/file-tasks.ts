import { Database } from "bun:sqlite"

// What another thread does with the SQLite file. Each connection ends with its call, because one
// that stayed would outlive its store.

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
 * Throws SQLite's error when the disk refuses.
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

/** One bad page may be told many times. */
const MOST_FAULTS = 10

/** `quick` reads every page; `full` also compares each index with its table. */
type Thoroughness = "quick" | "full"

export interface FileToCheck {
  path: string
  how: Thoroughness
  /** One table and its indexes; without it the whole file. */
  table?: string
  /** Leaves the write-ahead log as it is; otherwise the last connection copies it into the file. */
  readonly?: boolean
}

function faultsOf(database: Database, { how, table }: FileToCheck): string[] {
  const about = table === undefined ? MOST_FAULTS : `'${table.replaceAll("'", "''")}'`
  const pragma = how === "quick" ? "quick_check" : "integrity_check"
  using check = database.prepare<[string], []>(`PRAGMA ${pragma}(${about})`)
  const lines = check.values().map(([line]) => String(line))
  return lines.filter((line) => line !== "ok").slice(0, MOST_FAULTS)
}

/**
 * Faults of the file as SQLite words them; an empty list is a sound file. The connection ends with the
 * call. Throws SQLite's error where the file is too damaged to be checked.
 */
export function checkFile(what: FileToCheck): string[] {
  const { path, readonly = false } = what
  const mode = readonly ? { readonly } : { readwrite: true }
  const database = new Database(path, { ...mode, strict: true })
  try {
    database.run("PRAGMA query_only = ON")
    return faultsOf(database, what)
  } finally {
    database.close()
  }
}

/** What is checked one after the other, so that no check reads an old state for long. */
export function tablesOf(path: string): string[] {
  const database = new Database(path, { readwrite: true, strict: true })
  try {
    using list = database.prepare<[string], []>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
    )
    return ["sqlite_schema", ...list.values().map(([name]) => String(name))]
  } finally {
    database.close()
  }
}
