import { existsSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { readSmallFile, UnusableFile } from "../../core/small-file"
import { upgradeFolder } from "./journal"

/** The end of the name of a signature. */
export const SIGNATURE = ".minisig"

/** Where the archive of the release lies while it is checked and unpacked, its signature beside it. */
export const releaseFile = (data_dir: string): string =>
  join(upgradeFolder(data_dir), "release.tar.gz")

/** Where the copy of the data lies that a new version is tried on. */
export const trialFolder = (data_dir: string): string => join(upgradeFolder(data_dir), "trial")

const stagedNote = (data_dir: string) => join(upgradeFolder(data_dir), "staged")

/** Names the path of the new program before that is written, so that what a crash leaves can be removed. */
export const noteStaged = (data_dir: string, path: string): void =>
  writeFileSync(stagedNote(data_dir), path, { mode: 0o600, flush: true })

/** Whether an upgrade runs that has stopped no server yet, or was cut off before that. */
export const hasTrial = (data_dir: string): boolean =>
  existsSync(stagedNote(data_dir)) || existsSync(trialFolder(data_dir))

/** Removes everything that an upgrade needs before it stops the server, the new program too. */
export function removeTrial(data_dir: string): void {
  const note = stagedNote(data_dir)
  const staged = readSmallFile(note, WITHOUT_NOTE)
  if (staged) removeStaged(note, staged)
  rmSync(trialFolder(data_dir), { recursive: true, force: true })
  const release = releaseFile(data_dir)
  for (const path of [release, release + SIGNATURE, note]) rmSync(path, { force: true })
}

const WITHOUT_NOTE = "If no upgrade runs, remove it."

function removeStaged(note: string, path: string): void {
  const is_path = path.startsWith("/") && !path.includes("\0")
  if (!is_path) throw new UnusableFile(note, "names no program", WITHOUT_NOTE)
  rmSync(path, { force: true })
}
