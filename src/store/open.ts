import { Database } from "bun:sqlite"
import { existsSync, mkdirSync } from "node:fs"
import { dirname } from "node:path"
import { SQL } from "bun"
import type { Settings } from "../core/config"
import type { CopyLog } from "./checkpoints"
import { pendingPostgres, pendingSqlite } from "./migrate"
import { embedded } from "./migrations"
import { openPostgres } from "./postgres"
import { openSqlite } from "./sqlite"
import type { Store } from "./store"

/**
 * Opens the database which the settings name, with every migration applied. `copyLog` takes the
 * checkpoints of an SQLite file off this thread.
 */
export async function openStore(
  settings: Settings,
  onTrouble: (error: unknown) => void = () => {},
  copyLog?: CopyLog,
): Promise<Store> {
  if (settings.database_url) return openPostgres({ url: settings.database_url, onTrouble })

  const path = sqlitePath(settings)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  return openSqlite({
    path,
    cache_mb: settings["storage.cache_mb"],
    wal_autocheckpoint: settings["storage.wal_autocheckpoint"],
    onTrouble,
    copyLog,
  })
}

const sqlitePath = (settings: Settings) =>
  settings["storage.sqlite.path"] ?? `${settings.data_dir}/belfry.db`

/**
 * The migrations that opening would apply, with nothing changed; beside a running server too.
 * Throws SchemaTooNew where opening would.
 */
export async function pendingMigrations(settings: Settings): Promise<string[]> {
  if (settings.database_url) {
    const pool = new SQL(settings.database_url, { max: 1 })
    try {
      return await pendingPostgres(pool)
    } finally {
      await pool.close()
    }
  }
  const path = sqlitePath(settings)
  if (!existsSync(path)) return embedded.sqlite.map(({ tag }) => tag)
  const reader = new Database(path, { readonly: true, strict: true })
  try {
    return pendingSqlite(reader)
  } finally {
    reader.close()
  }
}
