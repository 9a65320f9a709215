import { Database, SQLiteError } from "bun:sqlite"
import { chmodSync, closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs"
import { drizzle } from "drizzle-orm/bun-sqlite"
import { faultOf } from "../core/faults"
import { log } from "../core/log"
import { Checkpoints, type CopyLog } from "./checkpoints"
import {
  type BeginMode,
  DamagedDatabase,
  type DatabasePlace,
  explained,
  findDatabase,
  inspectFile,
  sizeOf,
  writeMarker,
} from "./database-file"
import { CHECKED_AT_OPEN_BYTES } from "./file-check"
import { checkFile } from "./file-tasks"
import { demandPermit, GroupCommit } from "./group-commit"
import { migrateSqlite } from "./migrate"
import { rawSqlite } from "./statements"
import type { Reader, Store, Tx } from "./store"

const BUSY_MILLISECONDS = 250
const WAL_LIMIT_BYTES = 64 * 1024 * 1024
const STATEMENT_CACHE = 512

/** 3.51.3 and 3.53.0 mend a corruption of the WAL; 3.52.0 was withdrawn with it inside. */
const SAFE_VERSION = /^3\.(51\.([3-9]|\d{2,})|5[3-9]\.|[6-9]\d\.|\d{3,}\.)|^[4-9]/

interface SqliteOptions {
  path: string
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
  const release = lock(options.path)
  try {
    return open(options, release)
  } catch (error) {
    release()
    throw error
  }
}

function open(options: SqliteOptions, release: () => void) {
  const { path, copyLog, cache_mb, wal_autocheckpoint: pages } = options
  const { writer, is_checked } = openSound(options)
  const reader = new Database(path, { strict: true })
  reader.run("PRAGMA query_only = ON")
  reader.run(`PRAGMA cache_size = -${cache_mb * 1024}`)

  let lost_fsync = false
  const onFault = (error: unknown) => {
    lost_fsync ||= faultOf(error) === "lost_fsync"
    if (lost_fsync) void checkpoints?.stop()
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
    afterCommit: (effect: () => void) => void demandPermit().effects.push(effect),
    noteChange: (table: string) => group.changes.note(table, demandPermit().effects),
  })
  rawSqlite.set(tx, writer)
  const read: Reader = Object.assign(drizzle(reader) as unknown as Reader, access)
  rawSqlite.set(read, reader)

  const store: Store = {
    read,
    isAlone: true,
    tx: (closure) => group.run(() => closure(tx)),
    async notify() {}, // one process holds the file: what is in its memory reaches everybody
    async listen() {},
    file: { path, is_checked },
    stats: group.stats,
    async close() {
      await checkpoints?.stop() // first: a group may begin while its thread is waited for
      await group.idle()
      reader.close()
      if (pages === 0 || lost_fsync) uncopied.add(group)
      else emptyLog(writer, onFault)
      writer.close()
      release()
    },
  }
  return store
}

/**
 * Their statements are never collected: with the last one a connection that was closed goes, and
 * with the last connection SQLite copies the log, which is not wanted, or would lie.
 */
const uncopied = new Set<GroupCommit>()

/** SQLite itself would, but not while a statement of the connection is still compiled. */
function emptyLog(writer: Database, onFault: (error: unknown) => void) {
  try {
    writer.run("PRAGMA wal_checkpoint(TRUNCATE)")
  } catch (error) {
    if (faultOf(error) === "lost_fsync") onFault(error)
    log.warn("the write-ahead log could not be copied; the next start copies it", { error })
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
  refuseUnsafe(writer)
  // Only before the first table. Later it would write, and that into a file not yet checked.
  if (!found.is_there) writer.run("PRAGMA auto_vacuum = INCREMENTAL")
  writer.run("PRAGMA journal_mode = WAL")
  writer.run("PRAGMA synchronous = FULL") // a 2xx means "on disk"
  writer.run(`PRAGMA busy_timeout = ${BUSY_MILLISECONDS}`) // it blocks the event loop: short
  writer.run(`PRAGMA cache_size = -${tuning.cache_mb * 1024}`)
  writer.run("PRAGMA temp_store = MEMORY")
  writer.run(`PRAGMA wal_autocheckpoint = ${tuning.wal_autocheckpoint}`)
  writer.run(`PRAGMA journal_size_limit = ${WAL_LIMIT_BYTES}`)
  if (found.is_there && found.is_small) demandSound(path)
  migrateSqlite(writer)
  writer.run("PRAGMA foreign_keys = ON") // after migrations: a rebuilt table needs it off
  chmodSync(path, 0o600)
  return writer
}

/** On a connection of its own: the cache of the writer would keep every page that was read. */
function demandSound(path: string) {
  const faults = checkFile({ path, how: "quick" })
  if (faults.length === 0) return
  throw new DamagedDatabase(`${path} is damaged: ${faults.join("; ")}.`, path)
}

function refuseUnsafe(database: Database) {
  const row = database.query("SELECT sqlite_version() AS version").get() as { version: string }
  if (SAFE_VERSION.test(row.version)) return
  throw new Error(`SQLite ${row.version} may damage a write-ahead log. Use a newer version of Bun.`)
}

/** A data folder that another process works in. `holder` is its process id, if it left one. */
export class FolderInUse extends Error {
  readonly holder: string | undefined

  constructor(path: string, holder: string | undefined) {
    const who = holder ? `the process ${holder}` : "another process"
    super(`${path} is in use by ${who}. Stop it, or choose another data folder.`)
    this.name = "FolderInUse"
    this.holder = holder
  }
}

/**
 * An exclusive transaction on a file of its own: SQLite takes an operating-system lock for it,
 * which dies with this process however it dies. The pid beside it is only for people.
 */
function lock(path: string): () => void {
  const pidFile = `${path}.pid`
  const guard = new Database(`${path}.lock`, { create: true })
  try {
    guard.run("PRAGMA locking_mode = EXCLUSIVE")
    guard.run("BEGIN EXCLUSIVE")
  } catch (error) {
    guard.close()
    if (!(error instanceof SQLiteError) || !error.code?.startsWith("SQLITE_BUSY")) throw error
    const holder = existsSync(pidFile) ? readFileSync(pidFile, "utf8").trim() : undefined
    throw new FolderInUse(path, holder || undefined)
  }
  writeFileSync(pidFile, `${process.pid}\n`)
  return () => guard.close()
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
