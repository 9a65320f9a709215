import type { BaseSQLiteDatabase } from "drizzle-orm/sqlite-core"

/** "async", so that every query is awaited: SQLite would not mind, Postgres would. */
type Database = BaseSQLiteDatabase<"async", unknown>

interface Access {
  /** The same object for the reader of a store and for each of its transactions. */
  readonly identity: object

  /** Only this process can write to the database: SQLite. */
  readonly isAlone: boolean

  /**
   * Calls `hear` after each commit of this store that changed one of the tables, until the returned
   * function is called. What another node changes is not heard of.
   */
  onChanged(tables: string[], hear: () => void): () => void

  /**
   * Where this process is alone: how often a table was changed, quiet writes left out. For a reader
   * undefined while a change is not committed; for a transaction changes count at once.
   */
  changeCount(table: string): number | undefined

  /** Where `readHeavy` reads. A transaction has none, and neither has a reader of one moment. */
  readonly heavy?: {
    run<Result>(owner: string, act: (read: HeavyRead) => Promise<Result>): Promise<Result>
  }
}

/** Sees what is committed. It cannot write, and the compiler says so. */
export type Reader = Pick<Database, "select" | "selectDistinct" | "$with" | "with"> & Access

/** A select of drizzle's builder that gives rows. */
export interface Select<Row> extends PromiseLike<Row[]> {
  prepare(): object
}

/** Runs one select outside the event loop. It is built with the given `db`, for nothing else is. */
export type HeavyRead = <Row>(build: (db: Reader) => Select<Row>) => Promise<Row[]>

/** An open transaction. It sees its own writes, and serves wherever a `Reader` is wanted. */
export type Tx = Reader &
  Pick<Database, "insert" | "update" | "delete"> & {
    /** Runs `effect` once the commit is on disk, and never when it does not come. */
    afterCommit(effect: () => void): void
    /** Says that the table was found changed by another node, so that what is remembered is forgotten. */
    noteChange(table: string): void
  }

export type Closure<Result> = (tx: Tx) => Promise<Result>

export interface Store {
  readonly read: Reader
  readonly isAlone: boolean

  /**
   * Resolves when the commit that carries the closure is on disk. A closure that throws leaves
   * nothing behind. It awaits nothing but its own `tx`, and it may be run again after a conflict
   * with another transaction, so it changes nothing outside either. One that writes for many
   * milliseconds names its project as `large_of`: on SQLite it waits behind short ones, and projects take turns.
   * One with `apart_ms` may wait: it begins that number of milliseconds after the end of the last one with `apart_ms`.
   * A last one that took longer makes it wait as long as it took, 250 ms at most. On SQLite it joins the commit of any other that comes before.
   */
  tx<Result>(
    closure: Closure<Result>,
    large_of?: string | undefined,
    apart_ms?: number | undefined,
  ): Promise<Result>

  /**
   * Reads of one moment: what is committed meanwhile is not seen. It should end within seconds, because
   * neither engine can clean up behind a moment that is still read.
   */
  snapshot<Result>(look: (db: Reader) => Promise<Result>): Promise<Result>

  /** Tells every node on this database; resolves when it is out. It may be lost: poll behind it. */
  notify(topic: string, payload: string): Promise<void>
  /** Resolves when the ear is open. */
  listen(topic: string, hear: (payload: string) => void): Promise<void>

  /**
   * Copies the write-ahead log into the database file and empties it, so that what was deleted is in
   * neither. False where the log stays as it is: another tool copies it (`storage.wal_autocheckpoint` is 0), or
   * a reader of an old state holds it. On Postgres it does nothing: there the server decides.
   */
  emptyLog(): Promise<boolean>

  close(): Promise<void>

  /** The SQLite file, and whether it was found sound as it was opened. */
  readonly file?: { path: string; is_checked: boolean }

  readonly stats: Stats
}

interface Stats {
  closures: number
  commits: number
}
