import { existsSync, renameSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import type { Settings } from "../../src/core/config"
import { log } from "../../src/core/log"
import {
  claimVerdict,
  makeUpgradeFolder,
  probationOf,
  readJournal,
  removeJournal,
  syncPath,
  type UpgradeJournal,
  type UpgradeVerdict,
  upgradeFolder,
  writeJournal,
} from "../../src/operations/upgrade/journal"
import { dropKeptDatabase, returnDatabase } from "../../src/operations/upgrade/kept-database"
import { FolderInUse, lockFolder } from "../../src/store/database-file"
import { programOf, stopProcess } from "./server-process"

/**
 * The permission to carry an upgrade of this folder on; undefined while another process has it. It ends with
 * this process, however that ends.
 */
export function lockUpgrade(data_dir: string): (() => void) | undefined {
  makeUpgradeFolder(data_dir)
  try {
    return lockFolder(join(upgradeFolder(data_dir), "running"))
  } catch (error) {
    if (error instanceof FolderInUse) return undefined
    throw error
  }
}

/** Ends an upgrade that nobody carries on. Nothing happens where there is none, or where a living process does. */
export async function recoverUpgrade(settings: Settings): Promise<void> {
  const release = lockUpgrade(settings.data_dir)
  try {
    const journal = release && readJournal(settings.data_dir)
    if (journal) await endUpgrade(settings, journal)
  } finally {
    release?.()
  }
}

/**
 * Ends an upgrade, for the process that has its lock: with the new version where that one accepts already, else with
 * the old one and its database. No server may run then. After a crash within it, a second call ends the same.
 */
export async function endUpgrade(
  settings: Settings,
  journal: UpgradeJournal,
): Promise<UpgradeVerdict> {
  const { data_dir } = settings
  const { id, step, from_version, to_version, keeps_database } = journal
  if (step === "starting" && claimVerdict(data_dir, id, "undone") === "kept") {
    await finishUpgrade(settings, journal)
    log.info("the upgrade was finished", { version: to_version })
    return "kept"
  }
  if (step !== "stopping" && step !== "copying") {
    returnProgram(journal) // first: a new program that cannot start could not end this after a crash
    writeJournal(data_dir, { ...journal, step: "returning" }) // no migration of the new version begins any more
    await stopNewVersion(data_dir, journal)
    if (keeps_database) await returnDatabase(settings)
  }
  await cleanUp(settings, journal)
  log.warn("the upgrade was undone; the version of before goes on", { version: from_version })
  return "undone"
}

/** The new version is there to stay. The old program stays beside it, as `<program>.previous`. */
export async function finishUpgrade(settings: Settings, journal: UpgradeJournal): Promise<void> {
  const { program, kept } = journal
  // An earlier version keeps it under another name until then.
  if (existsSync(kept)) renameSync(kept, previousOf(program))
  await cleanUp(settings, journal)
}

export const previousOf = (program: string): string => `${program}.previous`

/** It accepted nothing, so it need not stop in order. Its migrations go on without the command, too. */
async function stopNewVersion(data_dir: string, { program, staged }: UpgradeJournal) {
  const pid = probationOf(data_dir)
  if (pid === undefined || pid === process.pid) return
  const running = programOf(pid) // the id may have gone to another process meanwhile
  if (running === program || running === staged) await stopProcess(pid, 0)
}

/** As long as the new program waits under its own name, it has not taken the path of the old one. */
function returnProgram({ program, staged, kept }: UpgradeJournal): void {
  if (!existsSync(staged) && existsSync(kept)) renameSync(kept, program)
  syncPath(dirname(program))
}

async function cleanUp(settings: Settings, journal: UpgradeJournal): Promise<void> {
  const { keeps_database, step, staged, kept } = journal
  if (keeps_database && step !== "stopping") await dropKeptDatabase(settings)
  if (existsSync(staged)) rmSync(kept, { force: true })
  rmSync(staged, { force: true }) // last, because it tells what the kept program is for
  removeJournal(settings.data_dir)
}
