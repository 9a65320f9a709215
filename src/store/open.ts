import { mkdirSync } from "node:fs"
import { dirname } from "node:path"
import type { Settings } from "../core/config"
import { openPostgres } from "./postgres"
import { openSqlite } from "./sqlite"
import type { Store } from "./store"

/** Opens the database which the settings name, with every migration applied. */
export async function openStore(
  settings: Settings,
  onTrouble: (error: unknown) => void = () => {},
): Promise<Store> {
  if (settings.database_url) return openPostgres({ url: settings.database_url, onTrouble })

  const path = settings["storage.sqlite.path"] ?? `${settings.data_dir}/belfry.db`
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  return openSqlite({
    path,
    cache_mb: settings["storage.cache_mb"],
    wal_autocheckpoint: settings["storage.wal_autocheckpoint"],
    onTrouble,
  })
}
