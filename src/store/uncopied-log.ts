import { ptr } from "bun:ffi"
import { Database } from "bun:sqlite"
import { openSync } from "node:fs"
import { libc } from "../core/libc"

/** By the path of the SQLite file: the connections that would copy its log as the process ends. */
const connections = new Map<string, Set<Database>>()

/**
 * The write-ahead log of this file stays as it is when the process ends, however it ends. Bun and SQLite
 * would copy it into the file otherwise: Bun for each connection, closed or not, and SQLite with the last one.
 */
export function leaveLog(path: string, connection: Database): void {
  if (connections.size === 0) process.on("exit", leaveAll)
  const known = connections.get(path) ?? new Set()
  connections.set(path, known.add(connection))
}

function leaveAll(): void {
  for (const [path, known] of connections) {
    for (const connection of known) tryTo(() => read(connection))
    tryTo(() => keepFromCopying(path))
  }
}

// Open file description locks of Linux (fcntl(2)), and the bytes that SQLite locks for readers (os.h of SQLite).
const F_OFD_SETLK = 37
const F_RDLCK = 0
const SHARED_FIRST = 0x40000002
const SHARED_SIZE = 510

/**
 * The last connection copies the log only where it can lock the file for itself alone. Which one is the last is
 * chance. So a reader's lock that is of no connection stays until the process is gone.
 */
function keepFromCopying(path: string): void {
  const lock = new DataView(new ArrayBuffer(32)) // struct flock of 64-bit systems; whence 0 is the start
  lock.setInt16(0, F_RDLCK, true)
  lock.setBigInt64(8, BigInt(SHARED_FIRST), true)
  lock.setBigInt64(16, BigInt(SHARED_SIZE), true)
  if (libc()?.fcntl(openSync(path, "r"), F_OFD_SETLK, BigInt(ptr(lock))) === 0) return
  // Where there are no such locks, a connection that cannot write is the last one, as a rule.
  read(new Database(path, { readonly: true, strict: true }))
}

/** A connection copies nothing within a transaction. */
function read(connection: Database): void {
  if (connection.inTransaction) connection.run("ROLLBACK")
  connection.run("BEGIN")
  connection.query("SELECT count(*) FROM sqlite_schema").get()
}

/** The file may be gone or damaged. Then there is nothing to leave, and nobody is there to be told. */
function tryTo(act: () => void): void {
  try {
    act()
  } catch {}
}
