import { constants } from "node:fs"
import { type FileHandle, mkdir, open } from "node:fs/promises"
import { dirname, join } from "node:path"
import { syncFolder } from "../../core/blobs"
import type { TarEntry } from "../../lib/ustar"
import { ArchiveCursor, ArchiveError, FOREIGN } from "./archive-cursor"
import { blobOf, ENTRY } from "./archive-names"
import { type BackupManifest, readManifest } from "./manifest"

/** Where the entries of an archive go. Both folders are made; what is in them must not be of ours. */
interface ExtractTarget {
  /** Gets `database.db`, `config.json` and `manifest.json`. */
  folder: string
  /**
   * Gets the blobs as a server keeps them: `ab/abcd…`, those of received mail below `inbound`. Default:
   * `blobs` in the folder.
   */
  blobs_dir?: string
}

interface ReadOptions {
  /** Hears how many bytes of the archive were read by now. */
  onBytes?: (bytes: number) => void
  /** Ends the reading early: it then throws the signal's reason. */
  signal?: AbortSignal
}

export interface BackupArchive {
  path: string
  /** Bytes. */
  size: number
  manifest: BackupManifest
  /**
   * Reads every byte and compares every hash and count. Throws ArchiveError for the first that differs.
   * With `database`, the database is written to that new file meanwhile.
   */
  check(options?: ReadOptions & { database?: string }): Promise<void>
  /**
   * As `check`, and writes the entries: each file new, of mode 0600, and synced. Throws EEXIST for a file
   * that is there. After any error what was written must not be used.
   */
  extract(target: ExtractTarget, options?: ReadOptions): Promise<void>
}

/**
 * Reads the headers and the manifest. Throws ArchiveError for a file that is no archive, that is cut off,
 * that has an entry of another name, or that another version wrote in another format. Contents are
 * compared by `check` and `extract`.
 */
export async function openArchive(path: string): Promise<BackupArchive> {
  const { manifest, size } = await reading(path, false, readHeaders)
  return {
    path,
    size,
    manifest,
    check: async ({ database, ...options } = {}) => {
      const pathOf = (name: string) => (name === ENTRY.database ? database : undefined)
      await reading(path, true, (cursor) => readWhole(cursor, options, pathOf))
    },
    extract: async (target, options = {}) => {
      const pathOf = pathIn(target)
      const made = await reading(path, true, (cursor) => readWhole(cursor, options, pathOf))
      const folders = new Set([...made].flatMap((folder) => [folder, dirname(folder)]))
      for (const folder of folders) await syncFolder(folder)
    },
  }
}

async function reading<Result>(
  path: string,
  hashes: boolean,
  act: (cursor: ArchiveCursor) => Promise<Result>,
): Promise<Result> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK) // a pipe would never open
  try {
    const found = await file.stat()
    if (!found.isFile()) throw new ArchiveError(path, "foreign", FOREIGN)
    const { size } = found
    return await act(new ArchiveCursor(file, { path, size, hashes }))
  } finally {
    await file.close()
  }
}

async function readHeaders(
  cursor: ArchiveCursor,
): Promise<Pick<BackupArchive, "size" | "manifest">> {
  let manifest: BackupManifest | undefined
  for (let entry = await cursor.next(); entry; entry = await cursor.next()) {
    if (entry.name === ENTRY.manifest) manifest = await manifestIn(cursor, entry)
    else if (entry.name !== ENTRY.sum) cursor.skip(entry)
  }
  // The order of the entries makes sure of one.
  return { manifest: manifest as BackupManifest, size: cursor.read_bytes }
}

async function manifestIn(cursor: ArchiveCursor, entry: TarEntry): Promise<BackupManifest> {
  const manifest = readManifest(await cursor.text(entry))
  if ("unread" in manifest) {
    throw cursor.fault("other_format", `cannot be read: ${manifest.unread}. ${OTHER_VERSION}`)
  }
  return manifest
}

const OTHER_VERSION = "Use the version of belfry that wrote it."

/** Every byte, with each content written to the new file that `pathOf` names. Resolves with the folders of these. */
async function readWhole(
  cursor: ArchiveCursor,
  { onBytes, signal }: ReadOptions,
  pathOf: (name: string) => string | undefined,
): Promise<Set<string>> {
  const found = new FoundEntries()
  const folders = new Set<string>()
  for (let entry = await cursor.next(); entry; entry = await cursor.next()) {
    if (entry.name === ENTRY.sum) continue
    const hasher = new Bun.CryptoHasher("sha256")
    const path = pathOf(entry.name)
    const sink = path === undefined ? undefined : await newFile(path, folders)
    try {
      for await (const piece of cursor.pieces(entry)) {
        signal?.throwIfAborted()
        hasher.update(piece)
        await sink?.writeFile(piece)
        if (entry.name === ENTRY.manifest) found.manifest_text += piece.toString("latin1")
        onBytes?.(cursor.read_bytes)
      }
      await sink?.sync()
    } finally {
      await sink?.close()
    }
    found.add(cursor, entry, hasher.digest("hex"))
  }
  found.compare(cursor)
  return folders
}

async function newFile(path: string, folders: Set<string>): Promise<FileHandle> {
  const folder = dirname(path)
  if (!folders.has(folder)) await mkdir(folder, { recursive: true, mode: 0o700 })
  folders.add(folder)
  return open(path, "wx", 0o600)
}

/** What was read, to be compared with what the manifest says. */
class FoundEntries {
  manifest_text = ""
  readonly #entries: BackupManifest["entries"] = []
  readonly #blobs = {
    blobs: { count: 0, bytes: 0 },
    "inbound-blobs": { count: 0, bytes: 0 },
  }

  add(cursor: ArchiveCursor, { name, size }: TarEntry, sha256: string): void {
    const blob = blobOf(name)
    if (!blob) {
      if (name !== ENTRY.manifest) this.#entries.push({ name, size, sha256 })
    } else if (blob.sha256 === sha256) {
      this.#blobs[blob.folder].count += 1
      this.#blobs[blob.folder].bytes += size
    } else {
      throw cursor.damaged(`the content of "${name}" has another hash`)
    }
  }

  compare(cursor: ArchiveCursor): void {
    const manifest = readManifest(Buffer.from(this.manifest_text, "latin1").toString())
    if ("unread" in manifest) throw cursor.damaged(manifest.unread)
    const { entries, blobs, inbound_blobs } = manifest
    const isCounted = (one: { count: number; bytes: number }, other: typeof one) =>
      one.count === other.count && one.bytes === other.bytes
    const is_equal =
      JSON.stringify(entries) === JSON.stringify(this.#entries) &&
      isCounted(blobs, this.#blobs.blobs) &&
      isCounted(inbound_blobs, this.#blobs["inbound-blobs"])
    if (!is_equal) throw cursor.damaged("its manifest names other entries")
  }
}

/** Where an extraction writes an entry. Names were checked before: none leads out of the two folders. */
const pathIn =
  ({ folder, blobs_dir = join(folder, "blobs") }: ExtractTarget) =>
  (name: string): string => {
    const blob = blobOf(name)
    if (!blob) return join(folder, name)
    const home = blob.folder === "blobs" ? blobs_dir : join(blobs_dir, "inbound")
    return join(home, blob.sha256.slice(0, 2), blob.sha256)
  }
