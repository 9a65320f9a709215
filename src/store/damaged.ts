import { closeSync, openSync, readSync, statSync } from "node:fs"

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
  `Copy the data folder first. Then put back ${path} from a backup (without its -wal and -shm), or ` +
  `rescue what can be read: sqlite3 ${path} .recover | sqlite3 rescued.db`

/** What lies where the database should be. Throws DamagedDatabase for what cannot be one. */
export function lookAt(path: string): "missing" | "empty" | "there" {
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) return "missing"
  if (found.isDirectory()) throw new FolderInPlace(path)
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

/** A folder has the name of the database. */
export class FolderInPlace extends Error {
  override readonly name = "FolderInPlace"

  constructor(path: string) {
    super(
      `${path} is a folder, but the database must be a file. Move the folder away, or name another ` +
        "file in storage.sqlite.path.",
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
