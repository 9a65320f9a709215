import type { Loaded, Settings } from "../../src/core/config"
import { log } from "../../src/core/log"
import {
  claimVerdict,
  noteProbation,
  readJournal,
  readVerdict,
  type UpgradeJournal,
} from "../../src/operations/upgrade/journal"
import { version } from "../lib/environment"
import { type Exit, exits, Failure } from "../lib/errors"
import { pause } from "../lib/time"
import { isReplaced } from "./server-process"

const LOOK_MILLISECONDS = 200
const FINISH_MILLISECONDS = 2000

/**
 * To be called before a server opens its data. While an upgrade of the folder runs, it waits; what was left
 * in the middle of one is undone. Answers how to be admitted where this process is the new version: it must
 * accept nothing before that resolves. Throws with exit 75 where another program has to start instead.
 */
export async function enterUpgrade({ values }: Loaded): Promise<(() => Promise<void>) | undefined> {
  const { data_dir } = values
  let is_told = false
  for (;;) {
    const journal = readJournal(data_dir)
    // The other program has the turn, also where the upgrade ended since this process was started. What
    // starts this service again starts that one.
    if (isReplaced()) throw replaced()
    if (!journal) return undefined
    const { id, step, to_version } = journal
    const verdict = step === "starting" ? readVerdict(data_dir, id) : undefined
    const is_new = step === "starting" && version === to_version
    if (is_new && verdict === undefined) return onProbation(values, journal)
    if (!is_told) log.warn("an upgrade of this data folder is not over; waiting", { step })
    is_told = true
    const { recoverUpgrade } = await import("./upgrade-recovery")
    await recoverUpgrade(values)
    if (is_new && verdict === "kept") return undefined
    await pause(LOOK_MILLISECONDS)
  }
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

const replaced = () =>
  new Failure(
    exits.try_later,
    "upgrading",
    "An upgrade has put another version in the place of this program. Start it again.",
  )

/** How a server ends that was asked to stop: what starts services again is to do so during an upgrade. */
export const exitAfterStop = (data_dir: string): Exit =>
  readJournal(data_dir) ? exits.try_later : exits.done
