import type { Loaded, Settings } from "../../src/core/config"
import { log } from "../../src/core/log"
import {
  claimVerdict,
  noteProbation,
  readJournal,
  readVerdict,
  type UpgradeJournal,
} from "../../src/operations/upgrade/journal"
import { hasTrial } from "../../src/operations/upgrade/trial-files"
import type { StartOptions } from "../../src/server"
import { version } from "../lib/environment"
import { type Exit, exits, Failure } from "../lib/errors"
import { pause } from "../lib/time"
import { isReplaced } from "./server-process"

const LOOK_MILLISECONDS = 200
const FINISH_MILLISECONDS = 2000

type UpgradeEntry = Pick<StartOptions, "admit" | "demandTurn">

/**
 * To be called before a server opens its data. While an upgrade of the folder runs, it waits; what was left
 * in the middle of one is undone. Answers what it must ask before it accepts anything: as the new version,
 * whether it is admitted, else whether an upgrade has begun meanwhile. Throws with exit 75 where another
 * program has to start instead.
 */
export async function enterUpgrade({ values }: Loaded): Promise<UpgradeEntry> {
  const { data_dir } = values
  await endLeftTrial(values)
  let is_told = false
  for (;;) {
    const journal = readJournal(data_dir)
    // The other program has the turn, also where the upgrade ended since this process was started. What
    // starts this service again starts that one.
    if (isReplaced()) throw replaced()
    if (!journal) return { demandTurn: () => demandTurn(values) }
    const { id, step, to_version } = journal
    const verdict = step === "starting" ? readVerdict(data_dir, id) : undefined
    const is_new = step === "starting" && version === to_version
    if (is_new && verdict === undefined) return { admit: onProbation(values, journal) }
    if (!is_told) log.warn("an upgrade of this data folder is not over; waiting", { step })
    is_told = true
    const { recoverUpgrade } = await import("./upgrade-recovery")
    await recoverUpgrade(values)
    if (is_new && verdict === "kept") return {}
    await pause(LOOK_MILLISECONDS)
  }
}

/** Of an upgrade that was cut off in its trial, and of which no process is left that would remove it. */
async function endLeftTrial(settings: Settings): Promise<void> {
  if (!hasTrial(settings.data_dir)) return
  const { recoverUpgrade } = await import("./upgrade-recovery")
  await recoverUpgrade(settings).catch((error) =>
    log.warn("what is left of the trial of an upgrade could not be removed", { error }),
  )
}

/**
 * The upgrade command writes the journal, then looks for servers; on Postgres it keeps the tables, then looks
 * for nodes. This server can be found, then looks for both. So either it is stopped or makes the upgrade go
 * back, or it ends here: what it accepted would be lost with an undone upgrade.
 */
async function demandTurn(settings: Settings): Promise<void> {
  const place = await placeOfUpgrade(settings)
  if (place === "here") throw begun()
  if (place === "elsewhere") throw begunElsewhere()
}

/** Where the data is being upgraded: in this folder, or by another node of the database. Undefined where it is not. */
async function placeOfUpgrade({
  data_dir,
  database_url,
}: Settings): Promise<"here" | "elsewhere" | undefined> {
  if (readJournal(data_dir)) return "here"
  if (database_url === null) return undefined
  const { hasKeptSchema } = await import("../../src/operations/upgrade/kept-schema")
  return (await hasKeptSchema(database_url)) ? "elsewhere" : undefined
}

/** The note comes first: then either the one that undoes sees it, or this one sees the verdict. */
function onProbation(settings: Settings, journal: UpgradeJournal): () => Promise<void> {
  const { data_dir } = settings
  noteProbation(data_dir, process.pid)
  // In this order: the journal goes before the verdict.
  const is_undone = readVerdict(data_dir, journal.id) === "undone"
  if (is_undone || readJournal(data_dir)?.id !== journal.id) throw replaced()
  return () => admitted(settings, journal)
}

/** From here on the new version accepts, unless the old one comes back. */
async function admitted(settings: Settings, { id, to_version }: UpgradeJournal): Promise<void> {
  if (claimVerdict(settings.data_dir, id, "kept") !== "kept") throw replaced()
  log.info("the upgrade is done; this version accepts requests", { version: to_version })
  void finishLater(settings)
}

/**
 * To be called before the new version migrates for an upgrade. The command that began it may have died since, and the
 * old version may serve again. Throws Failure then. The note comes first: then either the one that undoes
 * sees it and ends this process, or this one sees that the old version comes back.
 */
export function enterMigration(data_dir: string, id: string): void {
  const demandStep = () => {
    const journal = readJournal(data_dir)
    if (journal?.id === id && journal.step === "changing") return
    const message = "The upgrade was undone before its migrations began. Nothing was changed."
    throw new Failure(exits.try_later, "upgrading", message)
  }
  demandStep()
  noteProbation(data_dir, process.pid)
  demandStep()
}

/**
 * For a command that opens the data by itself, before it does. What it changed would be lost with an undone upgrade,
 * and in the midst of a return it would damage the database. Throws Failure while an upgrade is not over.
 */
export function demandNoUpgrade({ data_dir }: Pick<Settings, "data_dir">): void {
  if (readJournal(data_dir)) throw notOver()
}

/** The same when the data is open: the folder, or the database, may be upgraded since. */
export async function demandStillNone(settings: Settings): Promise<void> {
  if (await placeOfUpgrade(settings)) throw notOver()
}

const notOver = () =>
  new Failure(
    exits.try_later,
    "upgrading",
    "An upgrade of this data is not over, so no other command may change it now. Run this one again afterwards.",
    { hint: "where the upgrade was cut off, start the server: it ends the upgrade" },
  )

/** The command that began the upgrade ends it. Where that one died, this process does. */
async function finishLater(settings: Settings): Promise<void> {
  const { recoverUpgrade } = await import("./upgrade-recovery")
  while (readJournal(settings.data_dir)) {
    await pause(FINISH_MILLISECONDS)
    await recoverUpgrade(settings).catch((error) =>
      log.warn("what is left of the upgrade could not be removed", { error }),
    )
  }
}

const begun = () =>
  new Failure(
    exits.try_later,
    "upgrading",
    "An upgrade of this data folder has begun while the server started. Start it again.",
  )

const begunElsewhere = () =>
  new Failure(
    exits.try_later,
    "upgrading",
    "Another node upgrades this database, so no other node may serve it now. Start this one again afterwards.",
    { hint: "where the upgrade was cut off, start the server of that node: it ends the upgrade" },
  )

const replaced = () =>
  new Failure(
    exits.try_later,
    "upgrading",
    "An upgrade has put another version in the place of this program. Start it again.",
  )

/** How a server ends that was asked to stop: what starts services again is to do so during an upgrade. */
export const exitAfterStop = (data_dir: string): Exit =>
  readJournal(data_dir) ? exits.try_later : exits.done
