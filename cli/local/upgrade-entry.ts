import type { Loaded, Settings } from "../../src/core/config"
import { log } from "../../src/core/log"
import {
  claimVerdict,
  noteProbation,
  readJournal,
  readVerdict,
  type UpgradeJournal,
} from "../../src/operations/upgrade/journal"
import type { StartOptions } from "../../src/server"
import { version } from "../lib/environment"
import { type Exit, exits, Failure } from "../lib/errors"
import { pause } from "../lib/time"
import { isReplaced } from "./server-process"

const LOOK_MILLISECONDS = 200
const FINISH_MILLISECONDS = 2000

type UpgradeEntry = Pick<StartOptions, "admit" | "requireTurn">

/**
 * To be called before a server opens its data. While an upgrade of the folder runs, it waits; what was left
 * in the middle of one is ended. Answers what it must ask before it accepts anything: as the new version,
 * whether it is admitted, else whether an upgrade has begun meanwhile. Throws with exit 75 where another
 * program has to start instead.
 */
export async function enterUpgrade({ values }: Loaded): Promise<UpgradeEntry> {
  const { data_dir } = values
  let is_told = false
  for (;;) {
    const journal = readJournal(data_dir)
    // The other program has the turn, also where the upgrade ended since this process was started. What
    // starts this service again starts that one.
    if (isReplaced()) throw replaced()
    if (!journal) return { requireTurn: () => requireNoUpgrade(values) }
    const { id, step, to_version } = journal
    const verdict = step === "starting" ? readVerdict(data_dir, id) : undefined
    const is_new = step === "starting" && version === to_version
    if (is_new && verdict === undefined) return { admit: onProbation(values, journal) }
    if (!is_told) log.warn("an upgrade of this data folder is not over; waiting", { step })
    is_told = true
    const { recoverUpgrade } = await import("./upgrade-exchange")
    await recoverUpgrade(values)
    if (is_new && verdict === "kept") return {}
    await pause(LOOK_MILLISECONDS)
  }
}

/**
 * For a server that others can find, and for a command that has opened the data by itself: throws Failure while an
 * upgrade is not over, because what they changed would be lost with an undone one. The upgrade command writes its
 * journal, then looks for servers; on Postgres it keeps the tables, then looks for nodes. So one of the two sees the other.
 */
export async function requireNoUpgrade({ data_dir, database_url }: Settings): Promise<void> {
  if (readJournal(data_dir))
    throw upgrading(
      "An upgrade of this data folder is not over. Start this again afterwards.",
      "where the upgrade was cut off, start the server: it ends the upgrade",
    )
  if (database_url === null) return
  const { hasKeptSchema } = await import("../../src/operations/upgrade/kept-database")
  if (await hasKeptSchema(database_url))
    throw upgrading(
      "Another node upgrades this database, so nothing else may open it now. Start this again afterwards.",
      "where the upgrade was cut off, start the server of that node: it ends the upgrade",
    )
}

/** The note comes first: then either the one that undoes sees it, or this one sees the verdict. */
function onProbation(settings: Settings, { id, to_version }: UpgradeJournal): () => Promise<void> {
  const { data_dir } = settings
  noteProbation(data_dir, process.pid)
  // In this order: the journal goes before the verdict.
  const is_undone = readVerdict(data_dir, id) === "undone"
  if (is_undone || readJournal(data_dir)?.id !== id) throw replaced()
  return async () => {
    // From here on the new version accepts, unless the old one comes back.
    if (claimVerdict(data_dir, id, "kept") !== "kept") throw replaced()
    log.info("the upgrade is done; this version accepts requests", { version: to_version })
    void finishLater(settings)
  }
}

/** The command that began the upgrade ends it. Where that one died, this process does. */
async function finishLater(settings: Settings): Promise<void> {
  const { recoverUpgrade } = await import("./upgrade-exchange")
  while (readJournal(settings.data_dir)) {
    await pause(FINISH_MILLISECONDS)
    await recoverUpgrade(settings).catch((error) =>
      log.warn("what is left of the upgrade could not be removed", { error }),
    )
  }
}

/**
 * To be called before the new version migrates for an upgrade, which may be one of an earlier version. The command that
 * began it may have died since, and the old version may serve again. Throws Failure then. The note comes first: then
 * either the one that undoes sees it and ends this process, or this one sees that the old version comes back.
 */
export function enterMigration(data_dir: string, id: string): void {
  const requireStep = () => {
    const journal = readJournal(data_dir)
    if (journal?.id !== id || journal.step !== "changing")
      throw upgrading("The upgrade was undone before its migrations began. Nothing was changed.")
  }
  requireStep()
  noteProbation(data_dir, process.pid)
  requireStep()
}

const upgrading = (message: string, hint?: string) =>
  new Failure(exits.try_later, "upgrading", message, hint === undefined ? {} : { hint })

const replaced = () =>
  upgrading("An upgrade has put another version in the place of this program. Start it again.")

/** How a server ends that was asked to stop: what starts services again is to do so during an upgrade. */
export const exitAfterStop = (data_dir: string): Exit =>
  readJournal(data_dir) ? exits.try_later : exits.done
