import { renameSync } from "node:fs"
import { dirname, join } from "node:path"
import type { Settings } from "../../src/core/config"
import { monotonic } from "../../src/core/time"
import {
  claimVerdict,
  forgetUpgrade,
  readVerdict,
  syncPath,
  type UpgradeJournal,
  type UpgradeStep,
  writeJournal,
} from "../../src/operations/upgrade/journal"
import { keepDatabase } from "../../src/operations/upgrade/kept-database"
import { servingNodes } from "../../src/operations/upgrade/kept-schema"
import { exits, Failure } from "../lib/errors"
import { pause } from "../lib/time"
import {
  isAlive,
  isSupervised,
  outputsOf,
  programOf,
  type ServerProcess,
  serverOf,
  startDetached,
  stopProcess,
} from "./server-process"
import { endUpgrade, finishUpgrade } from "./upgrade-end"

const LOOK_MILLISECONDS = 50
/** A server lets running work end for 20 s. */
const STOP_MILLISECONDS = 40_000
/** A node that was killed counts as serving for 20 s. */
const SILENT_MILLISECONDS = 21_000

export interface ExchangePlan {
  settings: Settings
  /** Without its first step. */
  upgrade: Omit<UpgradeJournal, "step">
  /** The one that runs, or ran when the command began: the new version is started as it was. */
  server: ServerProcess | undefined
  /** Applies the missing migrations with the new program. */
  migrate: () => Promise<unknown>
  /** Hears each step, for people. */
  onStep: (text: string) => Promise<void>
}

/**
 * Stops the server, keeps its database, migrates, exchanges the programs and starts the new one, which accepts once it
 * is ready. When anything fails before that, the program and the database of before come back, and the old server is
 * started again. Throws Failure then, and before it stops anything where other nodes serve the database. Answers the
 * milliseconds from the order to stop to the moment when the new version accepted; null where no server ran.
 */
export async function exchange(plan: ExchangePlan): Promise<number | null> {
  const { settings, upgrade, server, onStep } = plan
  const { data_dir } = settings
  const { id, keeps_database, program, staged, from_version, to_version } = upgrade
  const startAgain = server && starter(server, program, settings)
  let journal: UpgradeJournal = { ...upgrade, step: "stopping" }
  const step = (name: UpgradeStep) => {
    journal = { ...journal, step: name }
    writeJournal(data_dir, journal)
  }
  if (keeps_database) await requireAlone(settings, server ? 1 : 0)
  forgetUpgrade(data_dir)
  step("stopping")
  const began = monotonic()
  try {
    await onStep("stopping the server")
    await stopServers(plan)
    step("copying")
    if (keeps_database) {
      await onStep("keeping the database")
      await keepDatabase(settings)
      await requireAlone(settings, 0) // what a node accepted since then would be lost with an undone upgrade
    }
    step("changing")
    if (keeps_database) {
      await onStep("migrating")
      await plan.migrate()
    }
    renameSync(staged, program)
    syncPath(dirname(program))
    step("starting")
    if (startAgain) {
      await onStep(`starting ${to_version}`)
      await waitUntilKept(settings, id, startAgain())
    } else claimVerdict(data_dir, id, "kept")
    await finishUpgrade(settings, journal)
    return server ? Math.round(monotonic() - began) : null
  } catch (error) {
    await onStep("returning to the version of before")
    if ((await endUpgrade(settings, journal)) === "kept") return null
    startAgain?.()
    const reason = (error instanceof Error ? error.message : String(error)).replace(/\.$/, "")
    const message = `Version ${to_version} did not take over: ${reason}. Version ${from_version} and its data are back.`
    const hint = "nothing was accepted in between; the log of the server has more"
    throw new Failure(exits.failed, "upgrade_undone", message, { hint })
  }
}

/**
 * Starts what lies at the path of the program as the server was started, and answers its id; undefined where another
 * program starts it. The outputs are opened now, because a server that has ended has none.
 */
function starter(server: ServerProcess, program: string, settings: Settings) {
  const { "upgrade.supervisor": supervisor, data_dir } = settings
  const is_supervised = supervisor === "auto" ? isSupervised(server) : supervisor === "yes"
  const { words, cwd, environment } = server
  const outputs = outputsOf(server.pid, join(data_dir, "server.log"))
  return () =>
    is_supervised ? undefined : startDetached({ program, words, cwd, environment, outputs })
}

/** Also one that dies already, and what another program started again before it could see the journal. */
async function stopServers({ settings, server, upgrade }: ExchangePlan): Promise<void> {
  const { data_dir } = settings
  // A process that was killed has no program any more, and the lock of the database for a moment longer.
  if (server && [undefined, upgrade.program].includes(programOf(server.pid)))
    await stopProcess(server.pid, STOP_MILLISECONDS)
  for (;;) {
    const found = serverOf(data_dir)
    if (!found) return
    await stopProcess(found.pid, STOP_MILLISECONDS)
  }
}

/** Resolves when the new version accepts. Throws when it ends before, or is not ready in time. */
async function waitUntilKept(settings: Settings, id: string, pid: number | undefined) {
  const { data_dir, "upgrade.ready": ready_ms } = settings
  const deadline = monotonic() + ready_ms
  while (readVerdict(data_dir, id) !== "kept") {
    if (pid !== undefined && !isAlive(pid)) throw new Error("it ended at once")
    if (monotonic() > deadline) throw new Error(`it was not ready within ${ready_ms / 1000} s`)
    await pause(LOOK_MILLISECONDS)
  }
}

/**
 * Resolves when no node but `own` of this folder serves the database. Throws Failure where another one goes on: the
 * tables would change under it, and what it accepts could be lost.
 */
export async function requireAlone({ database_url }: Settings, own: number): Promise<void> {
  if (database_url === null) return
  const deadline = monotonic() + SILENT_MILLISECONDS
  for (;;) {
    const others = (await servingNodes(database_url)) - own
    if (others <= 0) return
    if (monotonic() > deadline) {
      const serve = others === 1 ? "other node serves" : "other nodes serve"
      const message = `${others} ${serve} this database, and the new version needs migrations.`
      const hint = "stop the other nodes, upgrade this one, then put the new program on the others"
      throw new Failure(exits.conflict, "other_nodes", message, { hint })
    }
    await pause(10 * LOOK_MILLISECONDS)
  }
}
