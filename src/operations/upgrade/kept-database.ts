import {
  existsSync,
  constants as files,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { copyFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import type { Settings } from "../../core/config"
import { lockFolder } from "../../store/database-file"
import { sqlitePath } from "../../store/open"
import { MARK_FILE } from "../database-mark"
import { syncPath, upgradeFolder } from "./journal"
import { dropKeptSchema, keepSchema, returnSchema } from "./kept-schema"

/** The database of before an upgrade lies beside its file under this name, and on Postgres in a schema. */
const SUFFIX = ".before-upgrade"

/**
 * Keeps the whole database aside, on disk when it resolves, with the mark that says how new it is. Nothing may have it
 * open. What an earlier attempt kept is replaced. Throws FolderInUse where a process holds the SQLite file.
 */
export async function keepDatabase(settings: Settings): Promise<void> {
  const { data_dir, database_url } = settings
  const mark = join(data_dir, MARK_FILE)
  const text = existsSync(mark) ? readFileSync(mark) : "" // an empty file stands for none
  writeFileSync(keptMark(data_dir), text, { mode: 0o600, flush: true })
  if (database_url !== null) return keepSchema(database_url)
  const path = sqlitePath(settings)
  const release = lockFolder(path)
  try {
    // With its log, which a server that was killed leaves, and which is nobody's to copy with Litestream.
    for (const end of ["-wal", ""]) await copySynced(path + end, path + SUFFIX + end)
    syncPath(dirname(path))
  } finally {
    release()
  }
}

/**
 * Puts back what `keepDatabase` kept, byte for byte. Nothing may have the database open. A second call, and
 * one after a crash within the first, ends the same.
 */
export async function returnDatabase(settings: Settings): Promise<void> {
  const { data_dir, database_url } = settings
  if (database_url !== null) await returnSchema(database_url)
  else returnFiles(sqlitePath(settings))
  const kept = keptMark(data_dir)
  if (!existsSync(kept)) return
  const text = readFileSync(kept)
  const mark = join(data_dir, MARK_FILE)
  if (text.length === 0) rmSync(mark, { force: true })
  else {
    writeFileSync(`${mark}.new`, text, { mode: 0o600, flush: true })
    renameSync(`${mark}.new`, mark)
  }
  syncPath(data_dir)
}

function returnFiles(path: string): void {
  const release = lockFolder(path)
  try {
    if (existsSync(path + SUFFIX)) {
      for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true })
      renameSync(path + SUFFIX, path)
    }
    if (existsSync(`${path}${SUFFIX}-wal`)) renameSync(`${path}${SUFFIX}-wal`, `${path}-wal`)
    syncPath(dirname(path))
  } finally {
    release()
  }
}

/** The upgrade is over, so the database of before goes. */
export async function dropKeptDatabase(settings: Settings): Promise<void> {
  const { data_dir, database_url } = settings
  rmSync(keptMark(data_dir), { force: true })
  if (database_url !== null) return dropKeptSchema(database_url)
  for (const end of ["", "-wal"]) rmSync(sqlitePath(settings) + SUFFIX + end, { force: true })
}

const keptMark = (data_dir: string) => join(upgradeFolder(data_dir), MARK_FILE + SUFFIX)

/** Where there is no such file, there is none at the target either. */
async function copySynced(from: string, to: string): Promise<void> {
  rmSync(to, { force: true })
  if (!existsSync(from)) return
  await copyFile(from, to, files.COPYFILE_FICLONE)
  syncPath(to)
}
