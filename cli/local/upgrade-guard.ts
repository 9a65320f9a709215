import { closeSync, openSync } from "node:fs"
import type { Settings } from "../../src/core/config"
import { log } from "../../src/core/log"
import { monotonic } from "../../src/core/time"
import { lockUpgrade } from "../../src/operations/upgrade/exchange"
import { probationOf, readJournal, type UpgradeJournal } from "../../src/operations/upgrade/journal"
import { environment } from "../lib/environment"
import { type Exit, exits } from "../lib/errors"
import { pause } from "../lib/time"
import { isAlive, type ServerOutputs, type ServerProcess, startDetached } from "./server-process"
import { endTrial, endUpgrade, isOfUpgrade } from "./upgrade-recovery"

const LOOK_MILLISECONDS = 250
/** A server that was asked to stop is gone by then; one that was not serves on. */
const STOP_MILLISECONDS = 40_000
/** A database that cannot be reached now, or that a dying process holds, may be there again. */
const RETRY_MILLISECONDS = 300_000

/**
 * Starts a process of this version that watches over an upgrade, until the command ends. It has the
 * environment of the server, which is in no file; without a server that of the command.
 */
export function startGuard(
  words: readonly string[],
  server: ServerProcess | undefined,
  outputs: ServerOutputs | undefined,
): void {
  const { cwd, environment: used } = server ?? { cwd: process.cwd(), environment }
  const nowhere = openSync("/dev/null", "a")
  startDetached({
    program: process.execPath,
    words: ["upgrade", "-", "--guard", ...words],
    cwd,
    environment: used,
    outputs: outputs ?? { out: nowhere, err: nowhere },
  })
  closeSync(nowhere)
}

/** Waits until no process carries the upgrade on. Where the process that carried it on died, this one ends it. */
export async function guardUpgrade(settings: Settings): Promise<Exit> {
  const { data_dir } = settings
  let give_up: number | undefined // counted from the first fault: backup and trial may have taken hours
  for (;;) {
    let release: (() => void) | undefined
    try {
      release = lockUpgrade(data_dir)
      if (release) {
        const journal = readJournal(data_dir)
        if (journal) await takeOver(settings, journal)
        await endTrial(data_dir)
        return exits.done
      }
    } catch (error) {
      give_up ??= monotonic() + RETRY_MILLISECONDS
      if (monotonic() > give_up) throw error
      log.warn("the upgrade cannot be ended yet", { error })
    } finally {
      release?.()
    }
    await pause(LOOK_MILLISECONDS)
  }
}

async function takeOver(settings: Settings, journal: UpgradeJournal): Promise<void> {
  const { server, program, is_supervised } = journal
  const old_pid = server?.pid
  await endUpgrade(settings, journal)
  if (!server || is_supervised) return
  const deadline = monotonic() + STOP_MILLISECONDS
  const serving = [old_pid, probationOf(settings.data_dir)]
  const isServing = (pid: number | undefined) =>
    pid !== undefined && isAlive(pid) && isOfUpgrade(pid, journal)
  while (serving.some(isServing)) {
    if (monotonic() > deadline) return
    await pause(LOOK_MILLISECONDS)
  }
  const { words, cwd } = server
  const { env: environment } = process
  startDetached({ program, words, cwd, environment, outputs: { out: 1, err: 2 } })
}
