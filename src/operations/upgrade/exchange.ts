import { copyFileSync, existsSync, linkSync, renameSync, rmSync } from "node:fs"
import { dirname } from "node:path"
import type { Settings } from "../../core/config"
import { FolderInUse, lockFolder } from "../../store/database-file"
import {
  makeUpgradeFolder,
  removeJournal,
  syncPath,
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
    copyWhole(program, kept) // a link to a file of another user is not allowed everywhere
  }
  renameSync(staged, program)
  syncPath(dirname(program))
}

const draftOf = (kept: string) => `${kept}.draft`

/** It has its name only when it is whole: an undone upgrade puts it in the place of the program. */
function copyWhole(program: string, kept: string): void {
  const draft = draftOf(kept)
  copyFileSync(program, draft)
  syncPath(draft)
  renameSync(draft, kept)
}

/**
 * The version of before comes back: from here on no migration of the new one begins, and no server of it waits for
 * its verdict. Answers the journal as it is now. Where nothing was changed yet, it stays as it was.
 */
export function beginReturn(data_dir: string, journal: UpgradeJournal): UpgradeJournal {
  if (journal.step === "stopping" || journal.step === "copying") return journal
  const returning: UpgradeJournal = { ...journal, step: "returning" }
  writeJournal(data_dir, returning)
  return returning
}

/**
 * Brings the program and the database of before back, after `beginReturn`. No server may run. A second call, and one after a
 * crash within the first, ends the same. `startOld` is called before the journal goes: after a kill there, another
 * process goes on. A server that starts meanwhile waits until the journal is gone.
 */
export async function undoUpgrade(
  settings: Settings,
  journal: UpgradeJournal,
  startOld: () => unknown = () => {},
): Promise<void> {
  const { data_dir } = settings
  const { step, program, kept, staged, keeps_database } = journal
  if (step === "returning") {
    if (existsSync(kept)) renameSync(kept, program)
    if (keeps_database) await returnDatabase(settings)
  }
  syncPath(dirname(program))
  await cleanUp(settings, journal)
  rmSync(staged, { force: true })
  startOld()
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
  { keeps_database, kept, step }: UpgradeJournal,
): Promise<void> {
  rmSync(draftOf(kept), { force: true })
  if (keeps_database && step !== "stopping") await dropKeptDatabase(settings)
  rmSync(`${upgradeFolder(settings.data_dir)}/trial`, { recursive: true, force: true })
}
