/** What a database error says about the storage beneath it. */
export type Trouble = "unwritable" | "lost_fsync" | "busy"

const UNWRITABLE = ["SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "ENOSPC"]

/** Class 53 is "insufficient resources", 58 "system error", 08 and 57P "the server is gone". */
const PG_UNWRITABLE = /^(53|58|08|57P)/

interface Fault {
  code?: string
  errno?: number | string
  cause?: Fault
}

/**
 * Tells storage trouble from a mistake in a statement. After `lost_fsync` nothing that was written
 * may be trusted: the kernel may have dropped the pages, so a second fsync would lie.
 */
export function troubleOf(error: unknown): Trouble | undefined {
  const fault = error as Fault | undefined
  if (!fault || typeof fault !== "object") return
  const code = String(fault.code ?? "")
  if (/^SQLITE_IOERR_(FSYNC|DIR_FSYNC)$/.test(code)) return "lost_fsync"
  if (code === "SQLITE_BUSY") return "busy"
  if (UNWRITABLE.some((prefix) => code.startsWith(prefix))) return "unwritable"
  if (PG_UNWRITABLE.test(String(fault.errno ?? ""))) return "unwritable"
  if (/^ERR_POSTGRES_(CONNECTION|IDLE|SERVER|LIFETIME)/.test(code)) return "unwritable"
  return fault.cause ? troubleOf(fault.cause) : undefined
}

/** The five-character SQLSTATE: a failing query arrives wrapped by drizzle, a failing COMMIT bare. */
export function sqlState(error: unknown): string | undefined {
  const { errno, cause } = error as { errno?: string; cause?: { errno?: string } }
  return cause?.errno ?? errno
}
