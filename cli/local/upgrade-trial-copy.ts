import { mkdirSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import type { Settings } from "../../src/core/config"
import { openSecrets } from "../../src/core/secrets"
import { openArchive } from "../../src/operations/backup/archive-reader"
import type { Backup } from "../../src/operations/backup/backup-folder"
import { createBackup } from "../../src/operations/backup/create-backup"
import { roomFault } from "../../src/operations/restore/restore-target"
import { exits, Failure } from "../lib/errors"
import { startFailure } from "./start-errors"

/**
 * Makes a backup, as it is made each day, and unpacks it where the new version is tried. So every hash of
 * the backup is compared before anything changes.
 */
export async function prepareTrial(
  settings: Settings,
  folder: string,
  say: (text: string) => void,
): Promise<Backup> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const { data_dir, "security.master_key": master_key } = settings
  try {
    const secrets = openSecrets({ data_dir, master_key, make: false })
    const backup = await createBackup(
      { settings, secrets },
      { onProgress: ({ step, done, total }) => say(`backup, ${step}: ${share(done, total)} %`) },
    )
    const archive = await openArchive(backup.path)
    // One copy is tried, and one is kept aside. The server that goes on must not come to its floor.
    const fault = await roomFault(settings, 2 * archive.size, "the upgrade")
    if (fault)
      throw new Failure(exits.storage, "storage", fault, {
        hint: "free some space, then try again",
      })
    await archive.extract(
      { folder },
      { onBytes: (bytes) => say(`copy for the trial: ${share(bytes, archive.size)} %`) },
    )
    renameSync(join(folder, "database.db"), join(folder, "belfry.db"))
    return backup
  } catch (error) {
    throw startFailure(error, { listen: "", ...settings })
  }
}

const share = (done: number, total: number) =>
  Math.min(100, Math.floor((100 * done) / (total || 1)))
