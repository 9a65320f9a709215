import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs"
import { exits, Failure } from "./errors"
import { unreadable } from "./input"

// A folder may hold what others put there: a link in it could publish any file of this user, or have one
// written over, and a pipe would be read for ever. So only what lies in the folder itself is a file of it.

/** What has the name, without following a link. */
export function kindOf(path: string): "missing" | "file" | "folder" | "link" | "special" {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return "missing"
  if (found.isSymbolicLink()) return "link"
  if (found.isDirectory()) return "folder"
  return found.isFile() ? "file" : "special"
}

const WORDS = {
  link: "a symbolic link",
  special: "a pipe, a socket or a device",
  folder: "a folder",
  file: "a file",
} as const

/** Throws exit 66 where the path is there and is not what it should be. Answers whether it is there. */
export function requireKind(path: string, wanted: "file" | "folder"): boolean {
  const kind = kindOf(path)
  if (kind !== wanted && kind !== "missing") throw notPlain(path, WORDS[kind], wanted)
  return kind === wanted
}

const notPlain = (path: string, found: string, wanted: "file" | "folder") =>
  new Failure(exits.no_input, "unsafe_file", `${path} is ${found}, not ${WORDS[wanted]}.`, {
    details: { path },
    hint: `put ${WORDS[wanted]} there, or remove it: links, pipes and devices in a folder are never followed`,
  })

/** The names in a folder, sorted. Throws exit 66. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === "ENOTDIR") throw notPlain(folder, WORDS.file, "folder")
    const failure = unreadable(error, folder, "the folder")
    const message = failure.message.replace("no file", "no folder")
    throw failure.with({ message, hint: "name a folder that exists and can be read" })
  }
}

/** The folder below one that was named; made where it is missing. Throws exit 66 for a link. */
export function makeFolder(path: string): void {
  if (!requireKind(path, "folder")) mkdirSync(path, { recursive: true })
}

const { O_RDONLY, O_WRONLY, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants

const MOST_OWN_BYTES = 16_777_216

/**
 * The text of a file that the command line keeps for this user, undefined where there is none. It may be a link, as
 * those of dotfiles are, but a pipe is never waited for. Throws exit 74.
 */
export function readOwnFile(path: string): string | undefined {
  let file: number | undefined
  try {
    file = openSync(path, O_RDONLY | O_NONBLOCK)
    const found = fstatSync(file)
    if (!found.isFile()) throw new Error("it is no file")
    if (found.size > MOST_OWN_BYTES) throw new Error(`it has ${found.size} bytes`)
    return readFileSync(file, "utf8")
  } catch (error) {
    const { code, message: reason } = error as NodeJS.ErrnoException
    if (code === "ENOENT") return undefined
    const message = `${path} cannot be read: ${code ?? reason}.`
    throw new Failure(exits.storage, "storage", message, {
      details: { path },
      hint: "remove it, or give it back to your user: belfry makes it anew",
    })
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** The text of a file of a folder. Throws exit 66 for anything else, and exit 7 for more than `most_bytes`. */
export function readFileIn(path: string, most_bytes: number): string {
  return withFile(path, O_RDONLY, (file, size) => {
    if (size > most_bytes) throw tooLong(path, most_bytes)
    return readFileSync(file, "utf8")
  })
}

/** Writes a file of a folder: a new one, or over a file that is there. Throws exit 66 for a link. */
export function writeFileIn(path: string, text: string): void {
  withFile(path, O_WRONLY | O_CREAT, (file) => {
    ftruncateSync(file)
    writeFileSync(file, text)
  })
}

/** What is opened is looked at again: it may have been exchanged since its kind was read. */
function withFile<Result>(
  path: string,
  flags: number,
  act: (file: number, size: number) => Result,
): Result {
  requireKind(path, "file")
  let file: number
  try {
    file = openSync(path, flags | O_NOFOLLOW | O_NONBLOCK, 0o666)
  } catch (error) {
    throw unreadable(error, path, "the file")
  }
  try {
    const found = fstatSync(file)
    if (!found.isFile()) throw notPlain(path, WORDS.special, "file")
    return act(file, found.size)
  } finally {
    closeSync(file)
  }
}

const tooLong = (path: string, limit_bytes: number) =>
  new Failure(exits.invalid, "payload_too_large", `${path} is larger than ${limit_bytes} bytes.`, {
    details: { limit_bytes },
  })
