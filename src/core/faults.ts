const fullOrRefused = /^(SQLITE_(FULL|IOERR|READONLY|CANTOPEN)|ENOSPC|EDQUOT|EFBIG|EROFS|EIO)/
const failedSync = /^SQLITE_IOERR_(DIR_)?FSYNC$/

/** Primary SQLite result codes of the same four families, for errors that carry only a number. */
const sqliteFamilies: ReadonlySet<number> = new Set([8, 10, 13, 14])
const SYNC_RESULTS: ReadonlySet<number> = new Set([1034, 1290])
const MAX_CAUSES = 5

/** What an error says about the storage: `dead` is a failed fsync, which nothing may retry. */
export type StorageFault = "unhealthy" | "dead"

/** The fault an error (or one of its causes) tells of; undefined when it is not the storage's. */
export function storageFault(error: unknown): StorageFault | undefined {
  let current = error
  for (let depth = 0; depth < MAX_CAUSES && current instanceof Error; depth++) {
    const fault = ofOne(current)
    if (fault) return fault
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
  const result = error.name === "SQLiteError" && "errno" in error ? error.errno : undefined
  const number = typeof result === "number" ? result : 0
  const call = "syscall" in error ? error.syscall : undefined
  const sync = call === "fsync" || call === "fdatasync"
  if (failedSync.test(code) || SYNC_RESULTS.has(number) || (sync && code === "EIO")) return "dead"
  return fullOrRefused.test(code) || sqliteFamilies.has(number & 0xff) ? "unhealthy" : undefined
}
