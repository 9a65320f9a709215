import { constants } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import { codeOf } from "../../core/faults"
import { millisFrom } from "../../core/time"
import { paddingOf, TAR_END, tarHeader } from "../../lib/ustar"
import { type BlobFolder, blobsNamedIn, type NamedBlob } from "../../store/named-blobs"
import { ENTRY } from "./archive-names"
import type { BackupManifest } from "./manifest"

export interface PackOrder extends Omit<ArchiveContent, "blobs" | "onMissing"> {
  /** The archive; it must not exist yet. */
  to: string
  /** Where the files are that rows name. */
  folders: Record<BlobFolder, string>
}

/** Hashes of files that rows of the copy name, and that the archive lacks: the first ones of each folder. */
export type MissingFiles = Record<BlobFolder, string[]>

/** Of a folder that is gone altogether, all would be too many. */
const MOST_TOLD = 200

/** In a thread: writes the archive of a copy, with the files that its rows name. Answers which it lacks. */
export async function packArchive({ to, folders, ...content }: PackOrder): Promise<MissingFiles> {
  const missing: MissingFiles = { blobs: [], "inbound-blobs": [] }
  const blobs = blobsNamedIn(content.database, folders)
  await writeArchive(to, {
    ...content,
    blobs,
    onMissing: ({ folder, sha256 }) => {
      if (missing[folder].length < MOST_TOLD) missing[folder].push(sha256)
    },
  })
  return missing
}

/** Read and written in one go: memory stays flat, however large a file is. */
const PIECE_BYTES = 1024 * 1024

export interface ArchiveContent {
  /** The SQLite file of the copy. Nobody may change it meanwhile. */
  database: string
  /** In the order of the archive: by folder, then by hash. */
  blobs: Iterable<NamedBlob>
  /** Settings without secrets. */
  config: Record<string, unknown>
  /** Hears of each file that is gone or damaged, and so left out. */
  onMissing?: (blob: NamedBlob) => void
  manifest: Omit<BackupManifest, "format" | "blobs" | "inbound_blobs" | "entries">
}

/**
 * Writes an archive to a file that must not exist yet (mode 0600), and syncs it. Returns what its manifest
 * says. The caller renames it when it counts. Throws what the disk says; the draft then stays.
 */
export async function writeArchive(path: string, content: ArchiveContent): Promise<BackupManifest> {
  const file = await open(path, "wx", 0o600)
  try {
    const modified = Math.floor(millisFrom(content.manifest.created_at) / 1000)
    const writer = new ArchiveWriter(file, modified)
    const manifest = await writeEntries(writer, content)
    await writer.end()
    await file.sync()
    return manifest
  } finally {
    await file.close()
  }
}

async function writeEntries(writer: ArchiveWriter, content: ArchiveContent) {
  const entries = [await writer.addFile(ENTRY.database, content.database)]
  const counts = {
    blobs: { count: 0, bytes: 0, missing: 0 },
    "inbound-blobs": { count: 0, bytes: 0, missing: 0 },
  }
  for (const blob of content.blobs) {
    const { folder, sha256, path } = blob
    const written = await writer.addBlob(`${folder}/${sha256}`, path, sha256)
    counts[folder].count += written ? 1 : 0
    counts[folder].missing += written ? 0 : 1
    counts[folder].bytes += written?.size ?? 0
    if (!written) content.onMissing?.(blob)
  }
  entries.push(await writer.add(ENTRY.config, asText(content.config)))
  const manifest: BackupManifest = {
    format: 1,
    ...content.manifest,
    blobs: counts.blobs,
    inbound_blobs: counts["inbound-blobs"],
    entries,
  }
  await writer.add(ENTRY.manifest, asText(manifest))
  return manifest
}

const asText = (value: object) => Buffer.from(`${JSON.stringify(value, undefined, 2)}\n`)

/** The entries of a tar file one after the other, with a running hash of every byte. */
class ArchiveWriter {
  readonly #file: FileHandle
  readonly #modified: number
  readonly #whole = new Bun.CryptoHasher("sha256")
  readonly #piece = Buffer.allocUnsafe(PIECE_BYTES)

  constructor(file: FileHandle, modified: number) {
    this.#file = file
    this.#modified = modified
  }

  async add(name: string, bytes: Buffer) {
    await this.#write(tarHeader({ name, size: bytes.length, modified: this.#modified }))
    await this.#write(bytes)
    await this.#pad(bytes.length)
    return { name, size: bytes.length, sha256: sha256Of(bytes) }
  }

  /**
   * Undefined, with nothing written, where the file is gone or has another hash: no reader would accept an
   * archive with it. Throws where it changes meanwhile.
   */
  async addBlob(name: string, path: string, sha256: string) {
    const found = await hashOf(path, this.#piece).catch(unlessMissing)
    if (found !== sha256) return undefined
    const written = await this.addFile(name, path).catch(unlessMissing)
    if (written && written.sha256 !== sha256) throw new Error(`${path} changed while it was copied`)
    return written
  }

  /** Throws where the file does not exist, and where it has another size at its end than at its start. */
  async addFile(name: string, path: string) {
    const source = await openFile(path)
    try {
      const { size } = await source.stat()
      await this.#write(tarHeader({ name, size, modified: this.#modified }))
      const hasher = new Bun.CryptoHasher("sha256")
      let copied = 0
      for (;;) {
        const { bytesRead } = await source.read(this.#piece, 0, PIECE_BYTES, copied)
        if (bytesRead === 0) break
        const piece = this.#piece.subarray(0, bytesRead)
        hasher.update(piece)
        await this.#write(piece)
        copied += bytesRead
      }
      if (copied !== size) throw new Error(`${path} changed while it was copied`)
      await this.#pad(size)
      return { name, size, sha256: hasher.digest("hex") }
    } finally {
      await source.close()
    }
  }

  /** The hash of all before, and the end of the file. */
  async end(): Promise<void> {
    const sum = Buffer.from(`${this.#whole.digest("hex")}\n`)
    const header = tarHeader({ name: ENTRY.sum, size: sum.length, modified: this.#modified })
    const rest = [header, sum, Buffer.alloc(paddingOf(sum.length)), TAR_END]
    await this.#file.writeFile(Buffer.concat(rest))
  }

  async #write(bytes: Buffer): Promise<void> {
    this.#whole.update(bytes)
    await this.#file.writeFile(bytes)
  }

  async #pad(size: number): Promise<void> {
    const missing = paddingOf(size)
    if (missing > 0) await this.#write(Buffer.alloc(missing))
  }
}

/** Throws ENOENT for what is no file, too: a pipe would never open. */
async function openFile(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw Object.assign(new Error(`${path} is not a file`), { code: "ENOENT" })
}

/** Nothing of a blob is written before its file is open. */
function unlessMissing(error: unknown): undefined {
  if (codeOf(error) !== "ENOENT") throw error
}

async function hashOf(path: string, piece: Buffer): Promise<string> {
  const source = await openFile(path)
  try {
    const hasher = new Bun.CryptoHasher("sha256")
    for (;;) {
      const { bytesRead } = await source.read(piece, 0, piece.length)
      if (bytesRead === 0) return hasher.digest("hex")
      hasher.update(piece.subarray(0, bytesRead))
    }
  } finally {
    await source.close()
  }
}

const sha256Of = (bytes: Uint8Array) => new Bun.CryptoHasher("sha256").update(bytes).digest("hex")
