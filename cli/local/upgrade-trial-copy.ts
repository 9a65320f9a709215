import { mkdirSync, renameSync, rmSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import type { Settings } from "../../src/core/config"
import { openSecrets } from "../../src/core/secrets"
import { openArchive } from "../../src/operations/backup/archive-reader"
import { type Backup, backupDir } from "../../src/operations/backup/backup-folder"
import { createBackup, databaseBytes } from "../../src/operations/backup/create-backup"
import { type SpaceNeed, spaceFault } from "../../src/operations/free-space"
import { trialFolder } from "../../src/operations/upgrade/trial-files"
import { sqlitePath } from "../../src/store/open"
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
    await demandSpace(settings, await copyNeeds(settings, archive.size))
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

/** Throws Failure where a disk would be full, or below the floor of the server that goes on. */
export async function demandSpace(settings: Settings, needs: readonly SpaceNeed[]): Promise<void> {
  const fault = await spaceFault(settings, needs, "the upgrade")
  if (!fault) return
  throw new Failure(exits.storage, "storage", fault, { hint: "free some space, then try again" })
}

/** What an upgrade writes at least, before anything of it is written. Files of messages come to it. */
export async function upgradeNeeds(settings: Settings, program: string): Promise<SpaceNeed[]> {
  const bytes = await databaseBytes(settings)
  return [
    { dir: dirname(program), bytes: statSync(program).size },
    { dir: backupDir(settings), bytes: 2 * bytes },
    ...(await copyNeeds(settings, bytes)),
  ]
}

/** One copy is tried, and one is kept aside: on Postgres by its server. */
async function copyNeeds(settings: Settings, bytes: number): Promise<SpaceNeed[]> {
  const tried = { dir: trialFolder(settings.data_dir), bytes }
  if (settings.database_url !== null) return [tried]
  return [tried, { dir: dirname(sqlitePath(settings)), bytes: await databaseBytes(settings) }]
}

const share = (done: number, total: number) =>
  Math.min(100, Math.floor((100 * done) / (total || 1)))
