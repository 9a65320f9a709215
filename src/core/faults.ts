/**
 * What an error says about the storage: `unwritable` may pass; after `lost_fsync` nothing that was
 * written may be trusted, because the kernel may have dropped the pages, so that a second fsync
 * would lie; after `damaged` the database file itself cannot be trusted; `busy` is another writer's
 * turn; `away` is a database server that cannot be reached, or takes no writes; `descriptors` is a
 * process that has as many files open as it may.
 */
export type StorageFault = "unwritable" | "lost_fsync" | "damaged" | "busy" | "away" | "descriptors"

/** The one table of storage faults. The first line that fits decides. */
const codes: readonly [StorageFault, RegExp][] = [
  ["lost_fsync", /^SQLITE_IOERR_(DIR_)?FSYNC$/],
  ["damaged", /^SQLITE_(CORRUPT|NOTADB)/],
  ["busy", /^SQLITE_BUSY$/],
  ["descriptors", /^(EMFILE|ENFILE)$/],
  ["unwritable", /^(SQLITE_(FULL|IOERR|READONLY|CANTOPEN)|ENOSPC|EDQUOT|EFBIG|EROFS|EIO)/],
  ["away", /^ERR_POSTGRES_(CONNECTION|IDLE|LIFETIME)/],
]

/**
 * SQLSTATE: class 53 is "insufficient resources", 58 "system error", 08 and 57P "the server is
 * gone", 25006 "read-only transaction", which is a standby or a full disk's last resort.
 */
const AWAY_STATES = /^(53|58|08|57P|25006)/

/** SQLite's own numbers, for errors that carry only those: families of results, and lost fsyncs. */
const sqliteFamilies: ReadonlySet<number> = new Set([8, 10, 13, 14])
const DAMAGED_FAMILIES: ReadonlySet<number> = new Set([11, 26])
const SYNC_RESULTS: ReadonlySet<number> = new Set([1034, 1290])
const MAX_CAUSES = 5

/** The trouble an error (or one of its causes) tells of; undefined when it is not the storage's. */
export function faultOf(error: unknown): StorageFault | undefined {
  let current = error
  for (let depth = 0; depth < MAX_CAUSES && current instanceof Error; depth++) {
    const trouble = ofOne(current)
    if (trouble) return trouble
    current = current.cause
  }
  return undefined
}

/** The `code` of a system or SQLite error, or undefined. */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined
  return typeof code === "string" ? code : undefined
}

function ofOne(error: Error): StorageFault | undefined {
  const code = codeOf(error) ?? ""
  const errno = "errno" in error ? error.errno : undefined
  const result = error.name === "SQLiteError" && typeof errno === "number" ? errno : 0
  const call = "syscall" in error ? error.syscall : undefined
  const sync = call === "fsync" || call === "fdatasync"
  if (SYNC_RESULTS.has(result) || (sync && code === "EIO")) return "lost_fsync"
  const line = codes.find(([, look]) => look.test(code))
  if (line) return line[0]
  if (typeof errno === "string" && AWAY_STATES.test(errno)) return "away"
  if (DAMAGED_FAMILIES.has(result & 0xff)) return "damaged"
  return sqliteFamilies.has(result & 0xff) ? "unwritable" : undefined
}
