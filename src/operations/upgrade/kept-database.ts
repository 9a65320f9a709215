import {
  existsSync,
  constants as files,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { copyFile, open } from "node:fs/promises"
import { dirname, join } from "node:path"
import type { Settings } from "../../core/config"
import { codeOf } from "../../core/faults"
import { lockFolder } from "../../store/database-file"
import { sqlitePath } from "../../store/open"
import { syncPath, upgradeFolder } from "./journal"
import { dropKeptSchema, keepSchema, returnSchema } from "./kept-schema"

/** Where the database of before an upgrade lies: in this schema on Postgres, else beside the file. */
const SUFFIX = ".before-upgrade"

/** Files of the data folder that say how new the database is. They go back together with it. */
const MARKS = ["database-mark"]

/**
 * Keeps the whole database aside, on disk when it resolves. Nothing may have it open. What an earlier
 * attempt kept is replaced. Throws FolderInUse where a process holds the SQLite file.
 */
export async function keepDatabase(settings: Settings): Promise<void> {
  const { data_dir, database_url } = settings
  for (const name of MARKS) keepMark(data_dir, name)
  if (database_url !== null) return keepSchema(database_url)
  const path = sqlitePath(settings)
  const release = lockFolder(path)
  try {
    // With its log, which a server that was killed leaves, and which is nobody's to copy with Litestream.
    await copySynced(`${path}-wal`, `${path}${SUFFIX}-wal`)
    await copySynced(path, `${path}${SUFFIX}`)
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
  for (const name of MARKS) returnMark(data_dir, name)
  syncPath(data_dir)
}

function returnFiles(path: string): void {
  const release = lockFolder(path)
  try {
    if (existsSync(`${path}${SUFFIX}`)) {
      rmSync(`${path}-wal`, { force: true })
      rmSync(`${path}-shm`, { force: true })
      renameSync(`${path}${SUFFIX}`, path)
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
  for (const name of MARKS) rmSync(keptMark(data_dir, name), { force: true })
  if (database_url !== null) return dropKeptSchema(database_url)
  const path = sqlitePath(settings)
  rmSync(`${path}${SUFFIX}`, { force: true })
  rmSync(`${path}${SUFFIX}-wal`, { force: true })
}

/** An empty file stands for one that was not there. */
function keepMark(data_dir: string, name: string): void {
  const path = join(data_dir, name)
  const text = existsSync(path) ? readFileSync(path) : ""
  writeFileSync(keptMark(data_dir, name), text, { mode: 0o600, flush: true })
}

function returnMark(data_dir: string, name: string): void {
  const kept = keptMark(data_dir, name)
  if (!existsSync(kept)) return
  const text = readFileSync(kept)
  const path = join(data_dir, name)
  if (text.length === 0) rmSync(path, { force: true })
  else {
    writeFileSync(`${path}.new`, text, { mode: 0o600, flush: true })
    renameSync(`${path}.new`, path)
  }
}

const keptMark = (data_dir: string, name: string) =>
  join(upgradeFolder(data_dir), `${name}${SUFFIX}`)

/** Where there is no such file, there is none at the target either. */
async function copySynced(from: string, to: string): Promise<void> {
  rmSync(to, { force: true })
  try {
    await copyFile(from, to, files.COPYFILE_FICLONE)
  } catch (error) {
    if (codeOf(error) === "ENOENT" && !existsSync(from)) return
    throw error
  }
  const copy = await open(to, "r+")
  try {
    await copy.sync()
  } finally {
    await copy.close()
  }
}
