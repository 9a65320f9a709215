import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { codeOf } from "../core/faults"
import { log } from "../core/log"
import { lookAt } from "./damaged"

/** Left in the data folder by the first commit, so that a lost database is missed. */
const MARKER = "database-began"

/**
 * Whether a database may begin where none is. `if_new`: in a folder that was never in use. `anew`:
 * also in one that was, and only where there is none. `never`: this command needs what is there.
 */
export type Begin = "if_new" | "anew" | "never"

export interface Place {
  /** The SQLite file. */
  path: string
  data_dir: string
  blobs_dir: string
}

/** There is no database, and this start may not begin one. The message says why, and what to do. */
export class NoDatabase extends Error {
  override readonly name = "NoDatabase"
}

/**
 * Answers whether the file is there. Throws NoDatabase where it should be and is not, and
 * DamagedDatabase or FolderInPlace for what cannot be one.
 */
export function demandPlace(place: Place, begin: Begin): boolean {
  const { path } = place
  const found = lookAt(path)
  if (found === "there") {
    if (begin === "anew") throw new NoDatabase(`${path} ${ANEW_BESIDE}`)
    return true
  }
  if (begin === "never") throw nothingIn(place.data_dir)
  const evidence = begin === "if_new" ? useOf(place) : undefined
  if (evidence) throw new NoDatabase(`${path} is ${found}, but ${evidence}. ${LOST}`)
  return false
}

const ANEW_BESIDE =
  "exists already, and --new works only where there is no database. Start without --new, or " +
  "move the file away first."

const LOST =
  "So this folder was in use before, and a new database would not have its data. Put the database " +
  "back (from a backup, or mount its disk). To begin with an empty database, give --new."

export const nothingIn = (data_dir: string) =>
  new NoDatabase(
    `There is no database in ${data_dir}. Name another folder with --data-dir, or make a database with ` +
      "`belfry up` or `belfry init`.",
  )

/** What tells that a database was here, as the end of "…, but". A master key alone does not. */
function useOf({ path, data_dir, blobs_dir }: Place): string | undefined {
  if (existsSync(join(data_dir, MARKER)))
    return `${join(data_dir, MARKER)} says that there was a database`
  if (hasBlobFolders(blobs_dir)) return `there are blobs in ${blobs_dir}`
  if (sizeOf(`${path}-wal`) > 0) return `its write-ahead log ${path}-wal exists`
  return undefined
}

/** Folders of ours: an empty disk that waits for its first start may have others. */
function hasBlobFolders(dir: string): boolean {
  try {
    return readdirSync(dir).some((name) => /^[0-9a-f]{2}$/.test(name))
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return false
    throw error
  }
}

/** To be called when the first commit is on disk; later it changes nothing. */
export function markBegun({ path, data_dir }: Place): void {
  const marker = join(data_dir, MARKER)
  if (existsSync(marker)) return
  try {
    writeFileSync(marker, `${path}\n${MARKER_TEXT}\n`, { mode: 0o600, flush: true })
  } catch (error) {
    log.warn("the marker file beside the database could not be written", { path: marker, error })
  }
}

const MARKER_TEXT =
  "This folder has a database. If the database is missing, Belfry does not start here without --new."

export const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0
