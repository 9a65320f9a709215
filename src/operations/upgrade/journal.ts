import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import {
  claimFile,
  readSmallFile,
  replaceFile,
  syncPath,
  UnusableFile,
  writeSynced,
} from "../../core/small-file"

/**
 * How far an upgrade is, in the order of the steps. Each is written before what it names begins:
 * - `stopping`: the server is asked to stop. The database and the program are as they were.
 * - `copying`: nothing serves. The database of before is being kept aside.
 * - `changing`: that copy is whole. The new version migrates, and takes the place of the old one.
 * - `starting`: the new version may start. It accepts nothing before the verdict.
 * - `returning`: the database and the program of before come back.
 */
const UPGRADE_STEPS = ["stopping", "copying", "changing", "starting", "returning"] as const
export type UpgradeStep = (typeof UPGRADE_STEPS)[number]

/**
 * What must be known to finish or to undo an upgrade, in a file of the data folder. The old and the new version both
 * read it, so its form and that of the verdict stay as they are. Earlier versions write more into it.
 */
export interface UpgradeJournal {
  format: 1
  id: string
  step: UpgradeStep
  from_version: string
  to_version: string
  /** The path of the program that is exchanged. */
  program: string
  /** Where the new program waits until it takes that path. */
  staged: string
  /** Where the old program is kept. */
  kept: string
  /** Whether the database of before is kept: only where a migration is missing. */
  keeps_database: boolean
}

/** Of the two only one can be written: whether the new version accepts, or the old one comes back. */
export type UpgradeVerdict = "kept" | "undone"

const JOURNAL = "upgrade.json"
const VERDICT = "upgrade-verdict"

/** What an upgrade needs until it is over. */
export const upgradeFolder = (data_dir: string): string => join(data_dir, "upgrade")

export const makeUpgradeFolder = (data_dir: string): void => {
  mkdirSync(upgradeFolder(data_dir), { recursive: true, mode: 0o700 })
}

/** The upgrade that is not over; undefined where there is none. */
export function readJournal(data_dir: string): UpgradeJournal | undefined {
  const path = join(data_dir, JOURNAL)
  const text = readSmallFile(path, WITHOUT_JOURNAL)
  if (text === undefined) return undefined
  const journal = journalIn(text)
  if (!journal) throw new UnusableFile(path, "is no journal of an upgrade", WITHOUT_JOURNAL)
  return journal
}

const WITHOUT_JOURNAL =
  "It says how far an upgrade got. If no upgrade has begun here, remove it. Otherwise look first which version " +
  "the program is (`belfry --version`), and keep a copy of the data folder."

function journalIn(text: string): UpgradeJournal | undefined {
  try {
    const journal = JSON.parse(text) as UpgradeJournal | null
    const is_ours = journal?.format === 1 && UPGRADE_STEPS.includes(journal.step)
    return is_ours ? journal : undefined
  } catch {
    return undefined
  }
}

/** On disk when it returns. */
export function writeJournal(data_dir: string, journal: UpgradeJournal): void {
  replaceFile(join(data_dir, JOURNAL), JSON.stringify(journal))
  syncPath(data_dir)
}

/** The upgrade is over. The verdict goes last: without a journal it means nothing. */
export function removeJournal(data_dir: string): void {
  rmSync(join(data_dir, JOURNAL), { force: true })
  syncPath(data_dir)
  rmSync(join(data_dir, VERDICT), { force: true })
}

/** Archives that earlier versions fetched. They stayed where the command was killed. */
const FETCHED = /\.tar\.gz$/

/** Forgets what an earlier upgrade left: its verdict, the process that waited for it, and an archive. */
export function forgetUpgrade(data_dir: string): void {
  rmSync(join(data_dir, VERDICT), { force: true })
  const folder = upgradeFolder(data_dir)
  const fetched = existsSync(folder) ? readdirSync(folder).filter((name) => FETCHED.test(name)) : []
  for (const name of [PROBATION, ...fetched]) rmSync(join(folder, name), { force: true })
}

/**
 * Decides the upgrade with this id, unless it is decided. Answers what was decided: of two processes that
 * ask at once, both hear the same.
 */
export function claimVerdict(data_dir: string, id: string, wanted: UpgradeVerdict): UpgradeVerdict {
  const path = join(data_dir, VERDICT)
  claimFile(path, `${id} ${wanted}`)
  const found = readVerdict(data_dir, id)
  if (!found) throw new Error(`${path} belongs to another upgrade`)
  return found
}

/** What was decided about the upgrade with this id. */
export function readVerdict(data_dir: string, id: string): UpgradeVerdict | undefined {
  const [of, verdict] = (readSmallFile(join(data_dir, VERDICT), OF_NO_UPGRADE) ?? "").split(" ")
  return of === id && (verdict === "kept" || verdict === "undone") ? verdict : undefined
}

const OF_NO_UPGRADE = "If no upgrade runs, remove it."

const PROBATION = "probation.pid"

/** The process of the new version that migrates or waits for the verdict, for what may have to end it. */
export const noteProbation = (data_dir: string, pid: number): void =>
  writeSynced(join(upgradeFolder(data_dir), PROBATION), String(pid))

/** Its id, also of one that has ended; undefined where none has begun. */
export function probationOf(data_dir: string): number | undefined {
  const text = readSmallFile(join(upgradeFolder(data_dir), PROBATION), OF_NO_UPGRADE)
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
}
