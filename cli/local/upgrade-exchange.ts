import { existsSync, renameSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import type { Settings } from "../../src/core/config"
import { log } from "../../src/core/log"
import { syncPath } from "../../src/core/small-file"
import { monotonic } from "../../src/core/time"
import {
  claimVerdict,
  forgetUpgrade,
  makeUpgradeFolder,
  probationOf,
  readJournal,
  readVerdict,
  removeJournal,
  type UpgradeJournal,
  type UpgradeStep,
  type UpgradeVerdict,
  upgradeFolder,
  writeJournal,
} from "../../src/operations/upgrade/journal"
import {
  dropKeptDatabase,
  keepDatabase,
  returnDatabase,
  servingNodes,
} from "../../src/operations/upgrade/kept-database"
import { FolderInUse, lockFolder } from "../../src/store/database-file"
import { sqlitePath } from "../../src/store/open"
import { exits, Failure } from "../lib/errors"
import { pause } from "../lib/time"
import {
  isAlive,
  isSupervised,
  programOf,
  type ServerProcess,
  serverOf,
  starterLike,
  stopProcess,
} from "./server-process"

const LOOK_MILLISECONDS = 50
/** A server lets running work end for 20 s. */
const STOP_MILLISECONDS = 40_000
/** A node that was killed counts as serving for 20 s. */
const SILENT_MILLISECONDS = 21_000

interface ExchangePlan {
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
    await onStep("returning to the earlier version")
    if ((await endUpgrade(settings, journal)) === "kept") return null
    startAgain?.()
    const reason = (error instanceof Error ? error.message : String(error)).replace(/\.$/, "")
    const message = `Version ${to_version} did not take over: ${reason}. Version ${from_version} and its data are back.`
    const hint = "nothing was accepted in between; the log of the server has more"
    throw new Failure(exits.failed, "upgrade_undone", message, { hint })
  }
}

/** Starts what lies at the path of the program as the server was; undefined where another program starts it. */
function starter(server: ServerProcess, program: string, settings: Settings) {
  const { "upgrade.supervisor": supervisor, data_dir } = settings
  const is_supervised = supervisor === "auto" ? isSupervised(server) : supervisor === "yes"
  const start = starterLike(server, program, join(data_dir, "server.log"))
  return () => (is_supervised ? undefined : start())
}

/**
 * Also one that dies already, and what another program started again before it could see the journal: it has the
 * database before others can find it, and ends by itself when it sees the journal.
 */
async function stopServers({ settings, server, upgrade }: ExchangePlan): Promise<void> {
  const { data_dir, database_url } = settings
  // A process that was killed has no program any more, and the lock of the database for a moment longer.
  if (server && [undefined, upgrade.program].includes(programOf(server.pid)))
    await stopProcess(server.pid, STOP_MILLISECONDS)
  for (let found = serverOf(data_dir); found; found = serverOf(data_dir))
    await stopProcess(found.pid, STOP_MILLISECONDS)
  if (database_url !== null) return
  await pause(LOOK_MILLISECONDS) // a start that did not see the journal has the lock by then
  const path = sqlitePath(settings)
  const release = (await lockWithin(path, STOP_MILLISECONDS)) ?? lockFolder(path) // throws FolderInUse
  release()
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

/**
 * The permission to carry an upgrade of this folder on; undefined where another process keeps it for longer than the
 * patience. It ends with this process, however that ends.
 */
export function lockUpgrade(data_dir: string, patience_ms = 0): Promise<(() => void) | undefined> {
  makeUpgradeFolder(data_dir)
  return lockWithin(join(upgradeFolder(data_dir), "running"), patience_ms)
}

async function lockWithin(path: string, patience_ms: number): Promise<(() => void) | undefined> {
  for (const deadline = monotonic() + patience_ms; ; await pause(LOOK_MILLISECONDS)) {
    try {
      return lockFolder(path)
    } catch (error) {
      if (!(error instanceof FolderInUse)) throw error
      if (monotonic() >= deadline) return undefined
    }
  }
}

/** Ends an upgrade that nobody carries on. Nothing happens where there is none, or where a living process does. */
export async function recoverUpgrade(settings: Settings): Promise<void> {
  const release = await lockUpgrade(settings.data_dir)
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
  log.warn("the upgrade was undone; the earlier version runs again", { version: from_version })
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
