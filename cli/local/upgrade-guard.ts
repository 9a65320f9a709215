import type { Settings } from "../../src/core/config"
import { log } from "../../src/core/log"
import { lockUpgrade } from "../../src/operations/upgrade/exchange"
import { probationOf, readJournal, type UpgradeJournal } from "../../src/operations/upgrade/journal"
import { type Exit, exits } from "../lib/errors"
import { millis, pause } from "../lib/time"
import { isAlive, type ServerOutputs, type ServerProcess, startDetached } from "./server-process"
import { endUpgrade, isOfUpgrade } from "./upgrade-recovery"

const LOOK_MILLISECONDS = 250
/** A server that was asked to stop is gone by then; one that was not serves on. */
const STOP_MILLISECONDS = 40_000
/** A database that cannot be reached now, or that a dying process holds, may be there again. */
const RETRY_MILLISECONDS = 300_000

/**
 * Starts a process of this version that watches over an upgrade where no supervisor would start a server
 * again. It has the environment of the server, which is in no file.
 */
export const startGuard = (
  words: readonly string[],
  { cwd, environment }: ServerProcess,
  outputs: ServerOutputs,
): void =>
  void startDetached({
    program: process.execPath,
    words: ["upgrade", "-", "--guard", ...words],
    cwd,
    environment,
    outputs,
  })

/** Waits until no process carries the upgrade on. Where the process that carried it on died, this one ends it. */
export async function guardUpgrade(settings: Settings): Promise<Exit> {
  const { data_dir } = settings
  const give_up = millis() + RETRY_MILLISECONDS
  for (;;) {
    const release = lockUpgrade(data_dir)
    if (!release) {
      await pause(LOOK_MILLISECONDS)
      continue
    }
    try {
      const journal = readJournal(data_dir)
      if (journal) await takeOver(settings, journal)
      return exits.done
    } catch (error) {
      if (millis() > give_up) throw error
      log.warn("the upgrade cannot be ended yet", { error })
    } finally {
      release()
    }
    await pause(LOOK_MILLISECONDS)
  }
}

async function takeOver(settings: Settings, journal: UpgradeJournal): Promise<void> {
  const { server, program } = journal
  const old_pid = server?.pid
  await endUpgrade(settings, journal)
  const deadline = millis() + STOP_MILLISECONDS
  const serving = [old_pid, probationOf(settings.data_dir)]
  const isServing = (pid: number | undefined) =>
    pid !== undefined && isAlive(pid) && isOfUpgrade(pid, journal)
  while (serving.some(isServing)) {
    if (millis() > deadline) return
    await pause(LOOK_MILLISECONDS)
  }
  if (!server) return
  const { words, cwd } = server
  const { env: environment } = process
  startDetached({ program, words, cwd, environment, outputs: { out: 1, err: 2 } })
}
