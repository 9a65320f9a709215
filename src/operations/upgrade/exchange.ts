import { copyFileSync, existsSync, linkSync, renameSync, rmSync } from "node:fs"
import { dirname } from "node:path"
import type { Settings } from "../../core/config"
import { FolderInUse, lockFolder } from "../../store/database-file"
import {
  makeUpgradeFolder,
  removeJournal,
  syncNames,
  type UpgradeJournal,
  upgradeFolder,
  upgradeLock,
  writeJournal,
} from "./journal"
import { dropKeptDatabase, returnDatabase } from "./kept-database"

/**
 * The permission to carry an upgrade of this folder on; undefined while another process has it. It ends with
 * this process, however that ends.
 */
export function lockUpgrade(data_dir: string): (() => void) | undefined {
  makeUpgradeFolder(data_dir)
  try {
    return lockFolder(upgradeLock(data_dir))
  } catch (error) {
    if (error instanceof FolderInUse) return undefined
    throw error
  }
}

/** Puts the new program in the place of the old one, which is kept. The path is never without one. */
export function exchangeProgram({ program, staged, kept }: UpgradeJournal): void {
  rmSync(kept, { force: true })
  try {
    linkSync(program, kept)
  } catch {
    copyFileSync(program, kept) // a link to a file of another user is not allowed everywhere
  }
  renameSync(staged, program)
  syncNames(dirname(program))
}

/**
 * Brings the program and the database of before back. No server may run. A second call, and one after a
 * crash within the first, ends the same.
 */
export async function undoUpgrade(settings: Settings, journal: UpgradeJournal): Promise<void> {
  const { data_dir } = settings
  const { step, program, kept, staged, keeps_database } = journal
  const is_changed = step !== "stopping" && step !== "copying"
  if (is_changed) {
    writeJournal(data_dir, { ...journal, step: "returning" })
    if (existsSync(kept)) renameSync(kept, program)
    if (keeps_database) await returnDatabase(settings)
  }
  syncNames(dirname(program))
  await cleanUp(settings, journal)
  rmSync(staged, { force: true })
  removeJournal(data_dir)
}

/** The new version is there to stay. The old program stays beside it, as `<program>.previous`. */
export async function finishUpgrade(settings: Settings, journal: UpgradeJournal): Promise<void> {
  const { program, kept, staged } = journal
  if (existsSync(kept)) renameSync(kept, `${program}.previous`)
  await cleanUp(settings, journal)
  rmSync(staged, { force: true })
  removeJournal(settings.data_dir)
}

async function cleanUp(
  settings: Settings,
  { keeps_database, step }: UpgradeJournal,
): Promise<void> {
  if (keeps_database && step !== "stopping") await dropKeptDatabase(settings)
  rmSync(`${upgradeFolder(settings.data_dir)}/trial`, { recursive: true, force: true })
}
