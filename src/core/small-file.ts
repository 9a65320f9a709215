import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { dirname } from "node:path"
import { codeOf } from "./faults"
import { newId } from "./ids"

const MOST_BYTES = 65_536

/** A small file that belongs to an instance cannot be used. The message names it, and says what to do. */
export class UnusableFile extends Error {
  override readonly name = "UnusableFile"

  /** `found` and `next` complete "<path> … . …". */
  constructor(path: string, found: string, next: string) {
    super(`${path} ${found}. ${next}`)
  }
}

/**
 * The text of a small file, undefined where there is none. Never waits for a pipe. Throws UnusableFile, with what to
 * do `next`, for what is no file, cannot be read or is too long to be one of ours.
 */
export function readSmallFile(path: string, next: string): string | undefined {
  let file: number
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    const code = codeOf(error)
    if (code === "ENOENT" || code === "ENOTDIR") return undefined
    requireFile(path, next)
    throw new UnusableFile(path, `cannot be read: ${code}`, next)
  }
  try {
    const found = fstatSync(file)
    if (!found.isFile()) throw noFile(path, found.isDirectory(), next)
    if (found.size > MOST_BYTES)
      throw new UnusableFile(path, `has ${found.size} bytes, so it is another file`, next)
    return readFileSync(file, "utf8")
  } finally {
    closeSync(file)
  }
}

/** Before a file is written, or opened by others: throws UnusableFile where something else has its name. */
export function requireFile(path: string, next: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found && !found.isFile()) throw noFile(path, found.isDirectory(), next)
}

/** Writes a file, on disk when it returns, in place of whatever a crash or somebody else left under its name. */
export function writeSynced(path: string, content: string | Uint8Array): void {
  rmSync(path, { force: true })
  writeFileSync(path, content, { flag: "wx", mode: 0o600, flush: true })
}

/** Puts the file with this content in the place of the one before, at once: no reader sees a part of it. */
export function replaceFile(path: string, content: string | Uint8Array): void {
  writeSynced(`${path}.new`, content)
  renameSync(`${path}.new`, path)
}

/**
 * Makes the file with this content unless its name is taken, on disk when it returns. Of two processes that do it at
 * once one wins, and no crash leaves half of it.
 */
export function claimFile(path: string, content: string): void {
  const draft = `${path}.${newId()}`
  try {
    writeSynced(draft, content)
    linkSync(draft, path)
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error
  } finally {
    rmSync(draft, { force: true })
  }
  syncPath(dirname(path))
}

/** The content of a file survives a power failure then, or the names that were made or moved in a folder. */
export function syncPath(path: string): void {
  const opened = openSync(path, "r")
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}

const noFile = (path: string, is_folder: boolean, next: string) =>
  new UnusableFile(path, `is ${is_folder ? "a folder" : "a pipe or a device"}, not a file`, next)
