import type { Settings } from "../../src/core/config"
import { monotonic } from "../../src/core/time"
import { exchangeProgram, finishUpgrade } from "../../src/operations/upgrade/exchange"
import {
  claimVerdict,
  forgetUpgrade,
  readVerdict,
  type UpgradeJournal,
  type UpgradeStep,
  writeJournal,
} from "../../src/operations/upgrade/journal"
import { keepDatabase } from "../../src/operations/upgrade/kept-database"
import { exits, Failure } from "../lib/errors"
import { pause } from "../lib/time"
import {
  isAlive,
  programOf,
  type ServerOutputs,
  type ServerProcess,
  serverOf,
  startDetached,
  stopProcess,
} from "./server-process"
import { demandNodes } from "./upgrade-nodes"
import { endUpgrade } from "./upgrade-recovery"
import { migrateWith } from "./upgrade-trial"

const LOOK_MILLISECONDS = 50
/** A server lets running work end for 20 s. */
const STOP_MILLISECONDS = 40_000

export interface ExchangePlan {
  settings: Settings
  /** Its first step. */
  journal: UpgradeJournal
  server: ServerProcess | undefined
  outputs: ServerOutputs | undefined
  /** `--config`, `--set` and `--data-dir` of this command, for commands of the new version. */
  words: readonly string[]
  environment: Record<string, string | undefined>
  ready_ms: number
  /** Hears each step, for people. */
  onStep: (text: string) => Promise<void>
}

export interface ExchangeResult {
  applied: string[]
  /** From the order to stop to the moment when the new version accepted; null where none ran. */
  downtime_ms: number | null
}

/**
 * Stops the server, keeps its database, migrates, exchanges the programs and starts the new one. It accepts
 * once it is ready. When anything fails before that, the program and the database of before come back, and
 * the old server is started again. Throws Failure then. Where other nodes serve the database, it throws
 * before it stops anything.
 */
export async function exchange(plan: ExchangePlan): Promise<ExchangeResult> {
  const { settings, server, onStep } = plan
  const { data_dir } = settings
  let journal = plan.journal
  let new_pid: number | undefined
  const began = monotonic()
  const step = (name: UpgradeStep) => {
    journal = { ...journal, step: name }
    writeJournal(data_dir, journal)
  }
  if (journal.keeps_database) await demandNodes(settings, server ? 1 : 0)
  forgetUpgrade(data_dir)
  step("stopping")
  try {
    if (server) {
      await onStep("stopping the server")
      await stopServers(plan, server)
    }
    step("copying")
    await onStep("keeping the database")
    if (journal.keeps_database) {
      await demandNodes(settings, 0)
      await keepDatabase(settings)
      await demandNodes(settings, 0) // what a node accepted since then would be lost with an undone upgrade
    }
    step("changing")
    await onStep("migrating")
    const words = ["--upgrade", journal.id, ...plan.words]
    const applied = await migrateWith(journal.staged, words, plan.environment)
    exchangeProgram(journal)
    step("starting")
    if (server) {
      await onStep(`starting ${journal.to_version}`)
      new_pid = journal.is_supervised ? undefined : startAgain(plan)
      await waitUntilKept(plan, new_pid)
    } else claimVerdict(data_dir, journal.id, "kept")
    await finishUpgrade(settings, journal)
    // It was killed when it accepted already, and nothing else starts it again.
    if (new_pid !== undefined && !isAlive(new_pid)) startAgain(plan)
    return { applied, downtime_ms: server ? Math.round(monotonic() - began) : null }
  } catch (error) {
    await onStep("returning to the version of before")
    const end = await endUpgrade(settings, journal, () => startAgain(plan))
    if (end === "kept") return { applied: [], downtime_ms: null }
    throw returned(error, journal, server === undefined || (await isServing(plan)))
  }
}

/**
 * Also what another program started again before it could see the journal. An id that went to another
 * process meanwhile is left alone.
 */
async function stopServers({ settings, journal }: ExchangePlan, { pid }: ServerProcess) {
  if (programOf(pid) === journal.program) await stopProcess(pid, STOP_MILLISECONDS)
  for (;;) {
    const found = serverOf(settings.data_dir)
    if (!found) return
    await stopProcess(found.pid, STOP_MILLISECONDS)
  }
}

/** Resolves when the new version accepts. Throws when it ends before, or is not ready in time. */
async function waitUntilKept({ settings, journal, ready_ms }: ExchangePlan, pid?: number) {
  const deadline = monotonic() + ready_ms
  for (;;) {
    if (readVerdict(settings.data_dir, journal.id) === "kept") return
    if (pid !== undefined && !isAlive(pid)) throw new Error("it ended at once")
    if (monotonic() > deadline) throw new Error(`it was not ready within ${ready_ms / 1000} s`)
    await pause(LOOK_MILLISECONDS)
  }
}

/** Starts what lies at the path of the program, as the server was started. */
export function startAgain({ journal, server, outputs }: ExchangePlan): number | undefined {
  if (!server || !outputs || journal.is_supervised) return undefined
  const { words, cwd, environment } = server
  return startDetached({ program: journal.program, words, cwd, environment, outputs })
}

/** Whether the version of before serves again, in the time that a new one has. */
async function isServing({ settings, ready_ms }: ExchangePlan): Promise<boolean> {
  const deadline = monotonic() + ready_ms
  while (!serverOf(settings.data_dir)) {
    if (monotonic() > deadline) return false
    await pause(LOOK_MILLISECONDS)
  }
  return true
}

function returned(error: unknown, journal: UpgradeJournal, serves: boolean): Failure {
  const { from_version, to_version } = journal
  const reason = error instanceof Error ? error.message : String(error)
  const message = `Version ${to_version} did not take over: ${reason}. Version ${from_version} and its data are back.`
  const hint = serves
    ? "nothing was accepted in between; the log of the server has more"
    : "the server does not run yet: see its log, and start it"
  return new Failure(exits.failed, "upgrade_undone", message.replace("..", "."), { hint })
}
