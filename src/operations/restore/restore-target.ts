import { dirname, join } from "node:path"
import type { Settings } from "../../core/config"
import { inspectFile, sizeOf } from "../../store/database-file"
import { sqlitePath } from "../../store/open"
import { onConnection } from "../../store/postgres-pool"
import type { PostgresConnection } from "../../store/shared-tables"
import type { BackupArchive } from "../backup/archive-reader"
import { spaceFault } from "../free-space"

const LEDGER = "belfry_migrations"

/** There is data where the copy was to go. Nothing was written. */
class TargetInUse extends Error {
  override readonly name = "TargetInUse"
}

/** The disk has no room for the copy. Nothing was written. */
export class NoRoomForRestore extends Error {
  override readonly name = "NoRoomForRestore"
}

/** The folder of the blobs. */
export const blobsDir = (settings: Pick<Settings, "data_dir" | "storage.blobs.dir">): string =>
  settings["storage.blobs.dir"] ?? join(settings.data_dir, "blobs")

/** Throws TargetInUse unless the settings name a place without a database, or a database without rows. */
export async function requireEmptyTarget(settings: Settings): Promise<void> {
  if (settings.database_url) return onConnection(settings.database_url, requireNoRows)
  const path = sqlitePath(settings)
  const is_there = inspectFile(path) === "there"
  if (!is_there && sizeOf(`${path}-wal`) === 0) return
  throw new TargetInUse(
    `${is_there ? path : `${path}-wal`} exists, but a backup is restored only where there is no database. Move it away, or name ` +
      "another folder with --data-dir.",
  )
}

/** Throws TargetInUse for a Postgres database that has rows, or tables of another program. */
export async function requireNoRows(pool: PostgresConnection): Promise<void> {
  const used = await usedTable(pool)
  if (used === undefined) return
  throw new TargetInUse(
    `The Postgres database has the table ${used}, but a backup is restored only into an empty one. ` +
      "Name another database in DATABASE_URL.",
  )
}

/** A table of another program, or one of ours with rows; undefined where there is none. */
async function usedTable(pool: PostgresConnection): Promise<string | undefined> {
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

/** Throws NoRoomForRestore where a disk would be full, or nearly so: that of the blobs may be another one. */
export async function requireRoom(
  settings: Settings,
  { manifest, size }: Pick<BackupArchive, "manifest" | "size">,
): Promise<void> {
  const blob_bytes = manifest.blobs.bytes + manifest.inbound_blobs.bytes
  const needs = [
    { dir: dirname(sqlitePath(settings)), bytes: Math.max(0, size - blob_bytes) },
    { dir: blobsDir(settings), bytes: blob_bytes },
  ]
  const fault = await spaceFault(settings, needs, "the restore")
  if (!fault) return
  throw new NoRoomForRestore(
    `${fault} Free some space, or name other folders with --data-dir or storage.blobs.dir.`,
  )
}
