import { mkdirSync, readdirSync, rmSync, statSync, utimesSync } from "node:fs"
import { type FileHandle, open, readdir, readFile, rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { codeOf } from "./faults"
import { newId } from "./ids"
import { millis, nextTurn } from "./time"

/** Files are spread over them by the first two digits of their hashes. */
export const FOLDERS = 256
const STALE_DRAFT_MS = 3_600_000

/** Longer than any request needs between storing a file and committing the row that names it. */
const YOUNG_MS = 3_600_000

export type Blobs = ReturnType<typeof blobsIn>

/**
 * Files named by their content. Throws when the folder cannot be made. `onFault` hears of every
 * failed write: a full disk, a lost fsync.
 */
export function openBlobs(dir: string, onFault: (error: unknown) => void = () => {}): Blobs {
  prepare(dir)
  return blobsIn(dir, onFault)
}

/** The same in a folder that was opened before, by another thread for example. */
export function blobsIn(dir: string, onFault: (error: unknown) => void = () => {}) {
  const drafts = join(dir, "drafts")
  const path = (sha256: string): string => {
    if (!/^[0-9a-f]{64}$/.test(sha256)) throw new Error("a blob is named by 64 hex digits")
    return join(dir, sha256.slice(0, 2), sha256)
  }
  return {
    /** The folder, for a worker that writes there itself. */
    dir,
    /** Where the file is (or would be), for a worker that reads it itself. */
    path,
    /** Resolves when the bytes are on disk under their hash; the same bytes twice are one file. */
    async put(...parts: Uint8Array[]): Promise<{ sha256: string; size: number }> {
      const sha256 = await hashOf(parts)
      const size = parts.reduce((sum, { length }) => sum + length, 0)
      try {
        if (!isPutAgain(path(sha256), size)) {
          await write(join(drafts, newId()), path(sha256), parts)
        }
        // Also for a file that was there: the request that stored it may not have synced the folder yet.
        await syncFolder(join(dir, sha256.slice(0, 2)))
      } catch (error) {
        onFault(error)
        throw error
      }
      return { sha256, size }
    },
    /** The hashes of the files in one of the `FOLDERS` folders. */
    list: async (folder: number) => (await readdir(join(dir, nameOf(folder)))).sort(),
    /**
     * Removes a file that no row names. A file younger than an hour stays, because a request may be
     * about to commit its row. False for a young file and for a missing one.
     */
    remove: (sha256: string) => remove(path(sha256), join(drafts, newId())),
    /** The bytes, or undefined when no file has that hash. */
    async get(sha256: string): Promise<Uint8Array | undefined> {
      try {
        return await readFile(path(sha256))
      } catch (error) {
        if (codeOf(error) === "ENOENT") return undefined
        throw error
      }
    },
  }
}

/** All folders are made at the start, so that `put` never has to sync more than one of them. */
function prepare(dir: string) {
  const drafts = join(dir, "drafts")
  mkdirSync(drafts, { recursive: true, mode: 0o700 })
  const there = new Set(readdirSync(dir))
  for (let number = 0; number < FOLDERS; number++) {
    const name = nameOf(number)
    if (!there.has(name)) mkdirSync(join(dir, name), { recursive: true, mode: 0o700 })
  }
  for (const name of readdirSync(drafts)) removeStale(join(drafts, name))
}

/** Between two turns of the event loop: hashing 25 MB at once would hold it for 50 ms. */
const HASHED_AT_ONCE = 1024 * 1024

async function hashOf(parts: Uint8Array[]): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256")
  for (const part of parts) {
    for (let at = 0; at < part.length; at += HASHED_AT_ONCE) {
      if (at > 0) await nextTurn()
      hasher.update(part.subarray(at, at + HASHED_AT_ONCE))
    }
  }
  return hasher.digest("hex")
}

const nameOf = (folder: number) => folder.toString(16).padStart(2, "0")

/** Left by a crash. Young ones may be those of another node on the same folder. */
function removeStale(draft: string): void {
  const found = statSync(draft, { throwIfNoEntry: false })
  if (found && found.mtimeMs < millis() - STALE_DRAFT_MS) rmSync(draft, { force: true })
}

/** Renews the age of a complete file of that name; false where there is none. */
function isPutAgain(path: string, size: number): boolean {
  if (statSync(path, { throwIfNoEntry: false })?.size !== size) return false
  try {
    utimesSync(path, millis() / 1000, millis() / 1000)
    return true
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false // removed at this moment
    throw error
  }
}

/**
 * The file is renamed first. A request that stores the same file meanwhile renews it or writes it
 * again.
 */
async function remove(path: string, aside: string): Promise<boolean> {
  if (isYoung(path)) return false
  try {
    await rename(path, aside)
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false
    throw error
  }
  if (isYoung(aside)) {
    await rename(aside, path)
    return false
  }
  await rm(aside, { force: true })
  return true
}

function isYoung(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false })
  return found !== undefined && found.mtimeMs > millis() - YOUNG_MS
}

/** One sync of many megabytes would hold up those of the database: a journal of the file system serves both. */
const SYNCED_AT_ONCE = 1024 * 1024

async function write(draft: string, path: string, parts: Uint8Array[]): Promise<void> {
  try {
    await using(await open(draft, "wx", 0o600), async (file) => {
      for (const part of parts) {
        for (let at = 0; at < part.length; at += SYNCED_AT_ONCE) {
          if (at > 0) await file.datasync()
          await file.writeFile(part.subarray(at, at + SYNCED_AT_ONCE))
        }
      }
      await file.sync()
    })
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

/** Makes the names in a folder durable: of files that were made, renamed or removed in it. */
export async function syncFolder(folder: string): Promise<void> {
  await using(await open(folder, "r"), (handle) => handle.sync())
}

async function using(file: FileHandle, use: (file: FileHandle) => Promise<void>): Promise<void> {
  try {
    await use(file)
  } finally {
    await file.close()
  }
}
