import type { Settings } from "../../src/core/config"
import { log } from "../../src/core/log"
import {
  beginReturn,
  finishUpgrade,
  lockUpgrade,
  undoUpgrade,
} from "../../src/operations/upgrade/exchange"
import {
  claimVerdict,
  probationOf,
  readJournal,
  type UpgradeJournal,
} from "../../src/operations/upgrade/journal"
import { removeTrial, trialFolder } from "../../src/operations/upgrade/trial-files"
import { processesOn, programOf, stopProcess } from "./server-process"

export type UpgradeEnd = "kept" | "undone"

/**
 * Ends an upgrade that nobody carries on: with the new version where that one accepts already, else with the
 * old one. What is left of a trial goes. Answers undefined where there is none, or where a living process
 * carries it on.
 */
export async function recoverUpgrade(settings: Settings): Promise<UpgradeEnd | undefined> {
  const { data_dir } = settings
  const release = lockUpgrade(data_dir)
  if (!release) return undefined
  try {
    const journal = readJournal(data_dir)
    const end = journal && (await endUpgrade(settings, journal))
    await endTrial(data_dir)
    return end
  } finally {
    release()
  }
}

/** The same for the process that has the lock. Where the version of before comes back, `startOld` starts it. */
export async function endUpgrade(
  settings: Settings,
  journal: UpgradeJournal,
  startOld?: () => unknown,
): Promise<UpgradeEnd> {
  const { data_dir } = settings
  const { id, step, from_version, to_version } = journal
  if (step === "starting" && claimVerdict(data_dir, id, "undone") === "kept") {
    await finishUpgrade(settings, journal)
    log.info("the upgrade was finished", { version: to_version })
    return "kept"
  }
  const returning = beginReturn(data_dir, journal)
  await stopNewVersion(data_dir, returning)
  await undoUpgrade(settings, returning, startOld)
  log.warn("the upgrade was undone; the version of before goes on", { version: from_version })
  return "undone"
}

/** Ends what still runs of a trial, and removes its files. For the process that has the lock. */
export async function endTrial(data_dir: string): Promise<void> {
  for (const pid of processesOn(trialFolder(data_dir))) await stopProcess(pid, 0)
  removeTrial(data_dir)
}

/** It accepted nothing, so it need not stop in order. Its migrations go on without the command, too. */
async function stopNewVersion(data_dir: string, journal: UpgradeJournal): Promise<void> {
  const { step } = journal
  if (step === "stopping" || step === "copying") return
  const pid = probationOf(data_dir)
  if (pid !== undefined && pid !== process.pid && isOfUpgrade(pid, journal))
    await stopProcess(pid, 0)
}

/** Whether the process runs one of the two programs. An id may have gone to another one meanwhile. */
export function isOfUpgrade(pid: number, { program, staged }: UpgradeJournal): boolean {
  const path = programOf(pid)
  return path === program || path === staged
}
