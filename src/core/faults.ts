/**
 * What an error means for the storage. `unwritable` may pass. After `lost_fsync` no written data
 * can be trusted, because the kernel may have dropped the pages, and a second fsync would succeed
 * falsely. After `damaged` the database file cannot be trusted. `busy` is another writer's
 * transaction. `away` is a database server that cannot be reached or takes no writes. `descriptors`
 * means that the process has reached its limit of open files.
 */
type StorageFault = "unwritable" | "lost_fsync" | "damaged" | "busy" | "away" | "descriptors"

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

/**
 * The storage fault of an error or of one of its causes; undefined for an error of another kind.
 */
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
