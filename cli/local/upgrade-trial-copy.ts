import { cpSync, existsSync, mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import type { Settings } from "../../src/core/config"
import { sqlitePath } from "../../src/store/open"
import { copyFileTo } from "../../src/store/trial-file"
import { exits, Failure } from "../lib/errors"

/** Makes a backup, and unpacks it where the new version is tried. */
export async function prepareTrial(
  settings: Settings,
  folder: string,
  say: (text: string) => void,
): Promise<{ path: string }> {
  if (settings.database_url !== null)
    throw new Failure(exits.conflict, "postgres", "This version upgrades only servers on SQLite.")
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  say("backup …")
  copyFileTo(sqlitePath(settings), join(folder, "belfry.db"))
  const blobs = settings["storage.blobs.dir"] ?? join(settings.data_dir, "blobs")
  if (existsSync(blobs)) cpSync(blobs, join(folder, "blobs"), { recursive: true })
  return { path: join(folder, "belfry.db") }
}
