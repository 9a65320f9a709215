import { Database } from "bun:sqlite"
import { chmodSync, closeSync, openSync } from "node:fs"
import { drizzle } from "drizzle-orm/bun-sqlite"
import { ApiError } from "../core/errors"
import { codeOf, faultOf } from "../core/faults"
import { log } from "../core/log"
import { monotonic } from "../core/time"
import {
  type BeginMode,
  DamagedDatabase,
  type DatabasePlace,
  explained,
  findDatabase,
  inspectFile,
  lockFolder,
  sizeOf,
  writeMarker,
} from "./database-file"
import { CHECKED_AT_OPEN_BYTES } from "./file-check"
import { checkFile, type LogState } from "./file-tasks"
import { GroupCommit, requirePermit } from "./group-commit"
import { openReadingThread } from "./heavy-reads"
import { migrateSqlite } from "./migrate"
import { readSnapshot } from "./snapshot"
import { rawSqlite } from "./statements"
import type { Reader, Store, Tx } from "./store"
import { leaveLog } from "./uncopied-log"

const BUSY_MILLISECONDS = 250
/** At the start nobody else waits for this process, and another program may copy the file just then. */
const BUSY_AT_START_MILLISECONDS = 10_000
const WAL_LIMIT_BYTES = 64 * 1024 * 1024
const STATEMENT_CACHE = 512

/** 3.51.3 and 3.53.0 mend a corruption of the WAL; 3.52.0 was withdrawn with it inside. */
const SAFE_VERSION = /^3\.(51\.([3-9]|\d{2,})|5[3-9]\.|[6-9]\d\.|\d{3,}\.)|^[4-9]/

/**
 * The writer uses the newest pages again and again, and most other pages once. A large cache would keep
 * these other pages: a publish or an import would fill it, and the memory would never come back.
 */
const WRITER_SHARE = 1 / 4

interface SqliteOptions {
  path: string
  /** Page cache of the reading connection. The writer has a quarter of it. */
  cache_mb: number
  /** Pages in the write-ahead log at which a checkpoint begins; 0: there are none. */
  wal_autocheckpoint: number
  /** Hears of every failed group or checkpoint: a full disk, a lost fsync. */
  onFault?: (error: unknown) => void
  /** What else tells that there was a database; without it a missing file is a new one. */
  place?: Omit<DatabasePlace, "path"> & { begin: BeginMode }
  /** Checkpoints in another thread; without it, SQLite makes them within a COMMIT. */
  copyLog?: CopyLog | undefined
}

/**
 * One connection writes, a second one reads. The reader never waits for the writer (WAL), and
 * it never sees a group that is still open. Refuses a file that another process holds.
 */
export function openSqlite(options: SqliteOptions): Store {
  Database.MAX_QUERY_CACHE_SIZE = STATEMENT_CACHE // before opening, else the 21st evicts
  const release = lockFolder(options.path)
  try {
    return open(options, release)
  } catch (error) {
    release()
    throw error
  }
}

function open(options: SqliteOptions, release: () => void): Store {
  const { path, copyLog, wal_autocheckpoint: pages } = options
  const { writer, is_checked } = openSound(options)
  const reader = openReader(options)

  let lost_fsync = false
  const onFault = (error: unknown) => {
    lost_fsync ||= faultOf(error) === "lost_fsync"
    if (lost_fsync) {
      void checkpoints?.stop()
      for (const connection of [writer, reader]) leaveLog(path, connection)
    }
    options.onFault?.(error)
  }
  watchReads(reader, onFault)
  const checkpoints =
    copyLog && pages > 0 ? new Checkpoints(writer, { path, pages, copyLog, onFault }) : undefined
  if (checkpoints) writer.run("PRAGMA wal_autocheckpoint = 0")
  const group = new GroupCommit(writer, onFault, () => checkpoints?.look())
  const access = {
    identity: group,
    isAlone: true,
    onChanged: (tables: string[], hear: () => void) => group.changes.listen(tables, hear),
  }
  const tx: Tx = Object.assign(drizzle(writer, { logger: group }) as unknown as Tx, {
    ...access,
    changeCount: (table: string) => group.changes.countOf(table),
    afterCommit: (effect: () => void) => void requirePermit().effects.push(effect),
    noteChange: (table: string) => group.changes.note(table, requirePermit().effects),
  })
  rawSqlite.set(tx, writer)
  const committed = {
    ...access,
    changeCount: (table: string) => group.changes.committedCountOf(table),
  }
  const thread = openReadingThread(path, committed, onFault)
  const { heavy } = thread
  const read: Reader = Object.assign(drizzle(reader) as unknown as Reader, { ...committed, heavy })
  rawSqlite.set(read, reader)

  return {
    read,
    isAlone: true,
    tx: (closure, large_of, apart_ms) => group.run(() => closure(tx), large_of, apart_ms),
    snapshot: (look) => readSnapshot(path, { ...access, changeCount: () => undefined }, look),
    async notify() {}, // one process holds the file: what is in its memory reaches everybody
    async listen() {},
    file: { path, is_checked },
    stats: group.stats,
    emptyLog: async () => {
      if (pages === 0) return false // Litestream copies the log, and loses track of one that we copy
      let is_empty = false
      await group.between(() => {
        is_empty = emptyLog(writer, onFault)
      })
      return is_empty
    },
    async close() {
      await thread.close()
      await checkpoints?.stop() // first: a group may begin while its thread is waited for
      await group.idle()
      if (pages > 0 && !lost_fsync) emptyLog(writer, onFault)
      // Otherwise they end with the process, because a copy of the log is not wanted, or would lie.
      if (pages > 0 && !lost_fsync) for (const connection of [reader, writer]) connection.close()
      release()
    },
  }
}

function openReader({ path, cache_mb, wal_autocheckpoint }: SqliteOptions): Database {
  const reader = new Database(path, { strict: true })
  if (wal_autocheckpoint === 0) leaveLog(path, reader)
  reader.run("PRAGMA query_only = ON")
  reader.run(`PRAGMA cache_size = -${cache_mb * 1024}`)
  return reader
}

/** SQLite itself would, but not while a statement of the connection is still compiled. */
function emptyLog(writer: Database, onFault: (error: unknown) => void): boolean {
  try {
    using empty = writer.prepare<LogState, []>("PRAGMA wal_checkpoint(TRUNCATE)")
    return empty.get()?.busy === 0
  } catch (error) {
    if (faultOf(error) === "lost_fsync") onFault(error)
    log.warn("the write-ahead log could not be copied; the next start copies it", { error })
    return false
  }
}

/** Throws, with what to do, for a file that should be there and is not, or that is damaged. */
function openSound(options: SqliteOptions) {
  const { path, place } = options
  const whole = place && { path, ...place }
  const is_there = whole ? findDatabase(whole, place.begin) : inspectFile(path) === "there"
  const is_small = sizeOf(path) <= CHECKED_AT_OPEN_BYTES
  try {
    const writer = openWriter(path, options, { is_there, is_small })
    if (whole) writeMarker(whole)
    return { writer, is_checked: is_small }
  } catch (error) {
    throw error instanceof Error && faultOf(error) === "damaged" ? explained(path, error) : error
  }
}

type Tuning = Pick<SqliteOptions, "cache_mb" | "wal_autocheckpoint">

function openWriter(path: string, tuning: Tuning, found: { is_there: boolean; is_small: boolean }) {
  closeSync(openSync(path, "a", 0o600)) // before SQLite does: the files beside it copy its mode
  const writer = new Database(path, { create: true, strict: true })
  if (tuning.wal_autocheckpoint === 0) leaveLog(path, writer)
  writer.run(`PRAGMA busy_timeout = ${BUSY_AT_START_MILLISECONDS}`)
  refuseUnsafe(writer)
  // Only before the first table. Later it would write, and that into a file not yet checked.
  if (!found.is_there) writer.run("PRAGMA auto_vacuum = INCREMENTAL")
  writer.run("PRAGMA journal_mode = WAL")
  writer.run("PRAGMA synchronous = FULL") // a 2xx means "on disk"
  writer.run("PRAGMA secure_delete = ON") // what is erased is not in free pages
  writer.run(`PRAGMA cache_size = -${tuning.cache_mb * 1024 * WRITER_SHARE}`)
  writer.run("PRAGMA temp_store = MEMORY")
  writer.run(`PRAGMA wal_autocheckpoint = ${tuning.wal_autocheckpoint}`)
  writer.run(`PRAGMA journal_size_limit = ${WAL_LIMIT_BYTES}`)
  if (found.is_there && found.is_small) requireSound(path)
  migrateSqlite(writer)
  writer.run("PRAGMA foreign_keys = ON") // after migrations: a rebuilt table needs it off
  writer.run(`PRAGMA busy_timeout = ${BUSY_MILLISECONDS}`) // it blocks the event loop: short
  chmodSync(path, 0o600)
  return writer
}

/** On a connection of its own: the cache of the writer would keep every page that was read. */
function requireSound(path: string) {
  const faults = checkFile({ path, how: "quick" })
  if (faults.length === 0) return
  throw new DamagedDatabase(`${path} is damaged: ${faults.join("; ")}.`, path)
}

function refuseUnsafe(database: Database) {
  const row = database.query("SELECT sqlite_version() AS version").get() as { version: string }
  if (SAFE_VERSION.test(row.version)) return
  throw new Error(`SQLite ${row.version} may damage a write-ahead log. Use a newer version of Bun.`)
}

const CALLS = ["all", "get", "values", "run"] as const

/** A compiled statement, as far as it is watched. */
type Calls = Record<(typeof CALLS)[number], (...values: unknown[]) => unknown>

/**
 * Reports a damaged file from every call, even where the caller handles the error: a read is the
 * first call that finds a bad page, and its caller may know nothing of storage. It watches the
 * statements prepared from now on.
 */
function watchReads(database: Database, hear: (error: unknown) => void): void {
  const prepare = database.prepare.bind(database) as (...given: unknown[]) => Calls
  const watch = <Result>(act: () => Result): Result => {
    try {
      return act()
    } catch (error) {
      if (faultOf(error) === "damaged") hear(error)
      throw error
    }
  }
  const watched = (...given: unknown[]) => {
    const statement = watch(() => prepare(...given))
    for (const call of CALLS) statement[call] = heard(statement[call], hear)
    return statement
  }
  Object.assign(database, { prepare: watched })
}

/** The same call. It is made thousands of times a second, so there is one function around it. */
function heard(call: Calls["all"], hear: (error: unknown) => void): Calls["all"] {
  return function (this: unknown, ...values) {
    try {
      return Reflect.apply(call, this, values)
    } catch (error) {
      if (faultOf(error) === "damaged") hear(error)
      throw error
    }
  }
}

/** The share of the checkpoint's length that the writer's own thread copies at the end. */
const REST = 1 / 4
/** Times that length: from there on the writer copies all there is, so that the log has an end. */
const BOUND = 8
/** A log that took longer to fill is copied here: a thread would cost more memory than it saves. */
const CALM_MS = 10_000

/** Runs `copyLog` in another thread; rejects with what that threw. */
export type CopyLog = (path: string) => Promise<void>

interface CheckpointOptions {
  path: string
  /** Length of the log at which a checkpoint begins. */
  pages: number
  copyLog: CopyLog
  /** A log that fills more slowly than this needs no other thread. Tests set it. */
  calm_ms?: number
  /** Hears what the disk refused. After a lost fsync it has to `stop` them: the next would lie. */
  onFault: (error: unknown) => void
}

/**
 * Checkpoints that hold the writer's thread for a fraction of their time. Another thread copies the
 * log; the few pages written meanwhile are copied here, between two groups. A thread alone would
 * never come to an end: the log begins anew only when a group starts on one that is copied to its
 * last page, and a busy writer adds pages during every pass. Where there is little to do, no thread
 * is asked: it would start for that, and stay.
 */
export class Checkpoints {
  #database: Database
  #options: CheckpointOptions
  #count: () => LogState
  #finish: () => LogState
  /** Length of the log at which something is to be done next. */
  #due: number
  /** What the last look found: length of the log, and how much of it was copied. */
  #pages = 0
  #copied = 0
  /** Since the other thread was asked: how many were copied then. */
  #asked: number | undefined
  #copying: Promise<void> | undefined
  /** When the log began anew, or was last tried in vain. */
  #since = monotonic()
  #ended = false

  constructor(database: Database, options: CheckpointOptions) {
    const checkpoint = (mode: "NOOP" | "PASSIVE") => {
      const statement = database.prepare<LogState, []>(`PRAGMA wal_checkpoint(${mode})`)
      return () => statement.get() ?? { busy: 1, log: 0, checkpointed: 0 }
    }
    this.#database = database
    this.#options = options
    this.#due = options.pages
    this.#count = checkpoint("NOOP") // takes a microsecond, and no lock
    this.#finish = checkpoint("PASSIVE")
  }

  /** To be called after each group: does, or orders, what the length of the log demands. */
  look(): void {
    if (this.#ended || this.#database.inTransaction) return
    const { pages: enough } = this.#options
    const { log: pages, checkpointed } = this.#count()
    const anew = pages < this.#pages || checkpointed < this.#copied
    if (anew) this.#wait(enough)
    this.#pages = pages
    this.#copied = checkpointed
    if (pages < this.#due) return

    const is_asked = this.#asked !== undefined
    if (is_asked && pages > enough * BOUND) this.#end(pages)
    else if (this.#copying) return
    else if (!is_asked && this.#calm() && pages < 2 * enough) this.#end(pages)
    else if (this.#asked === undefined) this.#ask()
    else if (pages - checkpointed <= enough * REST) this.#end(pages)
    else if (checkpointed > this.#asked) this.#ask()
    else this.#wait(pages + enough) // a reader of an old state is in the way, or the disk is
  }

  /** Nothing is ordered any more. Resolves when the other thread has left the file. */
  async stop(): Promise<void> {
    this.#ended = true
    await this.#copying
  }

  #calm() {
    const { calm_ms = CALM_MS } = this.#options
    return monotonic() - this.#since >= calm_ms
  }

  #wait(due: number) {
    this.#due = due
    this.#since = monotonic()
    this.#asked = undefined
  }

  #ask() {
    const { copyLog, path } = this.#options
    this.#asked = this.#copied
    this.#copying = copyLog(path)
      .catch((error) => this.#failed(error))
      .then(() => {
        this.#copying = undefined
        this.look()
      })
      .catch((error) => this.#failed(error))
  }

  #end(pages: number) {
    try {
      const { busy, checkpointed } = this.#finish()
      if (busy) return // the other thread is at it: after the next group, then
      this.#copied = checkpointed
    } catch (error) {
      this.#failed(error)
    }
    this.#wait(pages + this.#options.pages)
  }

  #failed(error: unknown) {
    // No thread is free, or none is left, or no descriptor for one: later, or here.
    if (error instanceof ApiError || codeOf(error) === "SQLITE_CANTOPEN") return
    if (faultOf(error)) this.#options.onFault(error)
    else log.warn("the write-ahead log could not be copied into the database", { error })
  }
}
