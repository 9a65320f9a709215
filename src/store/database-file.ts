import { Database, SQLiteError } from "bun:sqlite"
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { dirname, join } from "node:path"
import { codeOf } from "../core/faults"
import { log } from "../core/log"
import { readSmallFile, requireFile, UnusableFile } from "../core/small-file"

/** Left in the data folder by the first commit, so that a lost database is missed. */
const MARKER = "database-began"

/**
 * Whether a database may begin where none is. `if_new`: in a folder that was never in use. `anew`:
 * also in one that was, and only where there is none. `never`: this command needs what is there.
 */
export type BeginMode = "if_new" | "anew" | "never"

export interface DatabasePlace {
  /** The SQLite file. */
  path: string
  data_dir: string
  blobs_dir: string
}

/** There is no database, and this start may not begin one. The message says why, and what to do. */
export class NoDatabase extends Error {
  override readonly name = "NoDatabase"
}

/**
 * Answers whether the file is there. Throws NoDatabase where it should be and is not, and
 * DamagedDatabase or FolderInPlace for what cannot be one.
 */
export function findDatabase(place: DatabasePlace, begin: BeginMode): boolean {
  const { path } = place
  const found = inspectFile(path)
  if (found === "there") {
    if (begin === "anew") throw new NoDatabase(`${path} ${ANEW_BESIDE}`)
    return true
  }
  if (begin === "never") throw nothingIn(place.data_dir)
  const evidence = begin === "if_new" ? useOf(place) : undefined
  if (evidence) throw new NoDatabase(`${path} is ${found}, but ${evidence}. ${LOST}`)
  return false
}

const ANEW_BESIDE =
  "exists already, and --new works only where there is no database. Start without --new, or " +
  "move the file away first."

const LOST =
  "So this folder was in use before, and a new database would not have its data. Put the database " +
  "back (from a backup, or mount its disk). To begin with an empty database, give --new."

export const nothingIn = (data_dir: string) =>
  new NoDatabase(
    `There is no database in ${data_dir}. Name another folder with --data-dir, or make a database with ` +
      "`belfry up` or `belfry init`.",
  )

/** What tells that a database was here, as the end of "…, but". A master key alone does not. */
function useOf({ path, data_dir, blobs_dir }: DatabasePlace): string | undefined {
  if (existsSync(join(data_dir, MARKER)))
    return `${join(data_dir, MARKER)} says that there was a database`
  if (hasBlobFolders(blobs_dir)) return `there are blobs in ${blobs_dir}`
  if (sizeOf(`${path}-wal`) > 0) return `its write-ahead log ${path}-wal exists`
  return undefined
}

/** Folders of ours: an empty disk that waits for its first start may have others. */
function hasBlobFolders(dir: string): boolean {
  try {
    return readdirSync(dir).some((name) => /^[0-9a-f]{2}$/.test(name))
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return false
    throw error
  }
}

/** To be called when the first commit is on disk; later it changes nothing. */
export function writeMarker({ path, data_dir }: DatabasePlace): void {
  const marker = join(data_dir, MARKER)
  if (existsSync(marker)) return
  try {
    writeFileSync(marker, `${path}\n${MARKER_TEXT}\n`, { mode: 0o600, flush: true })
  } catch (error) {
    log.warn("the marker file beside the database could not be written", { path: marker, error })
  }
}

const MARKER_TEXT =
  "This folder has a database. If the database is missing, Belfry does not start here without --new."

export const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

const MAGIC = "SQLite format 3\0"
const HEADER_BYTES = 100

/** The database cannot be used as it is. The message says what was found, and what to do next. */
export class DamagedDatabase extends Error {
  override readonly name = "DamagedDatabase"
  /** As SQLite calls it, so that `troubleOf` knows what it tells of. */
  readonly code = "SQLITE_CORRUPT"

  constructor(found: string, path: string, options: ErrorOptions = {}) {
    super(`${found} ${nextStep(path)}`, options)
  }
}

const nextStep = (path: string) =>
  `Copy the data folder first. Then move ${path} with its -wal and -shm away, and restore a backup: ` +
  "`belfry restore FILE`, with the newest file that `belfry backup verify` accepts."

/** What lies where the database should be. Throws DamagedDatabase for what cannot be one. */
export function inspectFile(path: string): "missing" | "empty" | "there" {
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) return "missing"
  if (!found.isFile()) throw new FolderInPlace(path, found.isDirectory())
  if (found.size === 0) return "empty"
  if (!headOf(path).subarray(0, MAGIC.length).equals(Buffer.from(MAGIC))) {
    throw new DamagedDatabase(`${path} is not an SQLite database: its first bytes are wrong.`, path)
  }
  return "there"
}

/** The file that we have open is no longer where the next start looks for it. */
export class LostDatabase extends Error {
  override readonly name = "LostDatabase"
  readonly code = "SQLITE_CORRUPT"
  readonly next =
    `Do not stop the server yet, because it still has the old files open. On Linux, copy them from ` +
    `/proc/${process.pid}/fd ("ls -l" names them). Then stop the server and put them back.`

  constructor(path: string) {
    super(`${path} was removed or replaced while the server was running.`)
  }
}

/** A folder, a pipe or a device has the name of the database. */
export class FolderInPlace extends Error {
  override readonly name = "FolderInPlace"

  constructor(path: string, is_folder: boolean) {
    super(
      `${path} is ${is_folder ? "a folder" : "a pipe or a device"}, but the database must be a file. ` +
        "Move it away, or name another file in storage.sqlite.path.",
    )
  }
}

/** SQLite's refusal of the file as an error that says what is wrong with it. */
export function explained(path: string, error: Error): DamagedDatabase {
  if (error instanceof DamagedDatabase) return error
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  const promised = bytesPromised(path)
  const said =
    size < promised
      ? `${path} is cut off: it should have ${promised} bytes, but it has ${size}.`
      : `${path} is damaged: ${error.message}.`
  return new DamagedDatabase(said, path, { cause: error })
}

/** The page size times the number of pages, as the header has them (SQLite file format, 1.3). */
function bytesPromised(path: string): number {
  const head = headOf(path)
  if (head.length < HEADER_BYTES) return HEADER_BYTES
  const page_size = head.readUInt16BE(16)
  return (page_size === 1 ? 65_536 : page_size) * head.readUInt32BE(28)
}

function headOf(path: string): Buffer {
  const file = openSync(path, "r")
  try {
    const head = Buffer.alloc(HEADER_BYTES)
    return head.subarray(0, readSync(file, head, 0, HEADER_BYTES, 0))
  } finally {
    closeSync(file)
  }
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
 * which dies with this process however it dies. The pid beside it is only for people. Throws FolderInUse, and
 * UnusableFile for what is not the file of a lock.
 */
export function lockFolder(path: string): () => void {
  const pidFile = `${path}.pid`
  const guard = openGuard(`${path}.lock`)
  try {
    guard.run("PRAGMA locking_mode = EXCLUSIVE")
    guard.run("BEGIN EXCLUSIVE")
    requireFile(pidFile, NO_SERVER)
    writeFileSync(pidFile, `${process.pid}\n`)
  } catch (error) {
    guard.close()
    if (!(error instanceof SQLiteError)) throw error
    if (!error.code?.startsWith("SQLITE_BUSY")) throw noLock(`${path}.lock`, error)
    throw new FolderInUse(path, readSmallFile(pidFile, NO_SERVER)?.trim() || undefined)
  }
  return () => guard.close()
}

const NO_SERVER = "Make sure that no server uses this folder. Then remove it: Belfry makes it anew."

/** SQLite does not tell which file it could not open, or why. */
function openGuard(path: string): Database {
  requireFile(path, NO_SERVER)
  try {
    return new Database(path, { create: true })
  } catch (error) {
    accessSync(dirname(path), constants.W_OK)
    throw error instanceof SQLiteError && existsSync(path) ? noLock(path, error) : error
  }
}

/** Of the lock file SQLite says the same as of a damaged database, which this is not. */
function noLock(path: string, error: SQLiteError): Error {
  const is_of_file = /^SQLITE_(NOTADB|CORRUPT|CANTOPEN|READONLY|PERM|AUTH)/.test(error.code ?? "")
  return is_of_file
    ? new UnusableFile(path, `cannot be used as a lock: ${error.message}`, NO_SERVER)
    : error
}
