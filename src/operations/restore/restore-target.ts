import { statSync } from "node:fs"
import { statfs } from "node:fs/promises"
import { dirname, join } from "node:path"
import type { Settings } from "../../core/config"
import { inspectFile, sizeOf } from "../../store/database-file"
import { sqlitePath } from "../../store/open"
import { connect } from "../../store/postgres-pool"

const LEDGER = "belfry_migrations"
const MB = 1024 * 1024

/** There is data where the copy was to go. Nothing was written. */
export class TargetInUse extends Error {
  override readonly name = "TargetInUse"
}

/** The disk has no room for the copy. Nothing was written. */
export class NoRoomForRestore extends Error {
  override readonly name = "NoRoomForRestore"
}

export const blobsDir = (settings: Settings): string =>
  settings["storage.blobs.dir"] ?? join(settings.data_dir, "blobs")

/** Throws TargetInUse unless the settings name a place without a database, or a database without rows. */
export async function demandEmptyTarget(settings: Settings): Promise<void> {
  if (settings.database_url) return demandEmptyPostgres(settings.database_url)
  const path = sqlitePath(settings)
  const is_there = inspectFile(path) === "there"
  const left = is_there ? path : [`${path}-wal`].find((file) => sizeOf(file) > 0)
  if (left === undefined) return
  throw new TargetInUse(
    `${left} exists, but a backup is restored only where there is no database. Move it away, or name ` +
      "another folder with --data-dir.",
  )
}

async function demandEmptyPostgres(url: string): Promise<void> {
  const pool = connect(url, { max: 1, prepare: false })
  try {
    const used = await usedTable(pool)
    if (used === undefined) return
    throw new TargetInUse(
      `The Postgres database has the table ${used}, but a backup is restored only into an empty one. ` +
        "Name another database in DATABASE_URL.",
    )
  } finally {
    await pool.close()
  }
}

/** A table of another program, or one of ours with rows; undefined where there is none. */
async function usedTable(pool: ReturnType<typeof connect>): Promise<string | undefined> {
  const rows: { table_name: string }[] = await pool.unsafe(
    `SELECT table_name FROM information_schema.tables
      WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY 1`,
  )
  const names = rows.map(({ table_name }) => table_name)
  if (!names.includes(LEDGER)) return names[0]
  for (const name of names) {
    if (name === LEDGER) continue
    const found = await pool.unsafe(`SELECT 1 FROM "${name.replaceAll('"', '""')}" LIMIT 1`)
    if (found.length > 0) return name
  }
  return undefined
}

/** Throws NoRoomForRestore where the disk would be full, or nearly so. */
export async function demandRoom(settings: Settings, bytes: number): Promise<void> {
  const fault = await roomFault(settings, bytes, "the restore")
  if (fault)
    throw new NoRoomForRestore(`${fault} Free some space, or name another folder with --data-dir.`)
}

/** What is missing where the disk of the database would be full, or below its floor. */
export async function roomFault(settings: Settings, bytes: number, what: string) {
  const there = existingFolder(dirname(sqlitePath(settings)))
  const { bavail, bsize } = await statfs(there)
  const needed = bytes + settings["storage.min_free_mb"] * MB
  const free = bavail * bsize
  if (free >= needed) return undefined
  const [has, needs] = [Math.floor(free / MB), Math.ceil(needed / MB)]
  return `${there} has ${has} MB of free space, but ${what} needs ${needs} MB.`
}

function existingFolder(path: string): string {
  const is_there = statSync(path, { throwIfNoEntry: false }) !== undefined
  return is_there || dirname(path) === path ? path : existingFolder(dirname(path))
}
