import type { FileHandle } from "node:fs/promises"
import { BLOCK_BYTES, paddingOf, readTarHeader, TAR_END, type TarEntry } from "../../lib/ustar"
import { ENTRY, mayFollow, SUM_BYTES } from "./archive-names"

/** Read in one go: memory stays flat, however large a file is. */
const PIECE_BYTES = 1024 * 1024

/** Of a manifest or a configuration, which are read whole. */
const MOST_TEXT_BYTES = 16 * 1024 * 1024

type ArchiveFault = "foreign" | "truncated" | "damaged" | "other_format" | "later_version"

/** The file is no archive that can be used. The message says which file, why, and what to do next. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError"
  readonly fault: ArchiveFault
  readonly path: string
  /** Each that its database has from what it should be, as the end of "the database …". */
  readonly differences: readonly string[]

  constructor(path: string, fault: ArchiveFault, said: string, differences: string[] = []) {
    super(`${path} ${said}`)
    this.path = path
    this.fault = fault
    this.differences = differences
  }
}

export const FOREIGN =
  "is not a backup of Belfry. Give a file that `belfry backup list` names, or a copy of one."

const ANOTHER = "Use another backup, or another copy of this one."

/** Reads an archive from its first byte to its last, and accepts only what the writer writes. */
export class ArchiveCursor {
  readonly #file: FileHandle
  readonly #path: string
  readonly #size: number
  /** Undefined where contents are skipped. */
  readonly #whole: Bun.CryptoHasher | undefined
  #at = 0
  #last: TarEntry | undefined

  constructor(file: FileHandle, options: { path: string; size: number; hashes: boolean }) {
    this.#file = file
    this.#path = options.path
    this.#size = options.size
    this.#whole = options.hashes ? new Bun.CryptoHasher("sha256") : undefined
  }

  /** The next entry; undefined behind the last one, where the file has to end. */
  async next(): Promise<TarEntry | undefined> {
    if (this.#last?.name === ENTRY.sum) return this.#end()
    const header = await this.#header()
    const entry = readTarHeader(header)
    if (!entry || "blocks_needed" in entry) throw this.#notOurs("a header is not as it was written")
    if (!mayFollow(entry.name, this.#last?.name)) {
      throw this.#notOurs(`the entry "${entry.name.slice(0, 100)}" does not belong there`)
    }
    if (this.#last && entry.modified !== this.#last.modified) {
      throw this.#notOurs(`the time of "${entry.name}" is not that of the others`)
    }
    if (entry.name === ENTRY.sum) await this.#compareSum(entry)
    else this.#whole?.update(header)
    this.#last = entry
    return entry
  }

  /** The content of the entry that `next` gave, piece by piece. To be read to its end, or skipped. */
  async *pieces({ size }: TarEntry): AsyncGenerator<Buffer> {
    const piece = Buffer.allocUnsafe(Math.min(size, PIECE_BYTES))
    for (let left = size; left > 0; left -= piece.length) {
      const part = piece.subarray(0, Math.min(left, piece.length))
      await this.#fill(part)
      this.#whole?.update(part)
      yield part
    }
    const padding = await this.#exactly(paddingOf(size))
    if (padding.some((byte) => byte !== 0))
      throw this.damaged("there are bytes between two entries")
    this.#whole?.update(padding)
  }

  get read_bytes(): number {
    return this.#at
  }

  async text(entry: TarEntry): Promise<string> {
    if (entry.size > MOST_TEXT_BYTES) throw this.damaged(`${entry.name} is too large`)
    const parts: Buffer[] = []
    for await (const piece of this.pieces(entry)) parts.push(Buffer.from(piece))
    return Buffer.concat(parts).toString()
  }

  /** Passes over the content of the entry that `next` gave, without reading it. */
  skip({ size }: TarEntry): void {
    this.#at += size + paddingOf(size)
    if (this.#at > this.#size) throw this.#truncated()
  }

  /** A fault with what was found, and what to do next. */
  damaged = (found: string) => this.fault("damaged", `is damaged: ${found}. ${ANOTHER}`)

  fault = (fault: ArchiveFault, said: string) => new ArchiveError(this.#path, fault, said)

  /** Damage, or a file of another kind where not even the first entry is one of ours. */
  #notOurs = (found: string) => (this.#last ? this.damaged(found) : this.fault("foreign", FOREIGN))

  #truncated() {
    const where = this.#last ? `, in or behind "${this.#last.name}"` : ""
    return this.fault("truncated", `is cut off: it ends at ${this.#size} bytes${where}. ${ANOTHER}`)
  }

  async #header(): Promise<Buffer> {
    if (!this.#last && this.#size < BLOCK_BYTES) throw this.fault("foreign", FOREIGN)
    const first = await this.#exactly(BLOCK_BYTES)
    const found = readTarHeader(first)
    if (!found || !("blocks_needed" in found)) return first
    return Buffer.concat([first, await this.#exactly((found.blocks_needed - 1) * BLOCK_BYTES)])
  }

  async #compareSum(entry: TarEntry): Promise<void> {
    if (entry.size !== SUM_BYTES) throw this.damaged(`${entry.name} has another length`)
    const digest = this.#whole?.digest("hex")
    const kept = (await this.#exactly(SUM_BYTES)).toString("latin1")
    if (!/^[0-9a-f]{64}\n$/.test(kept)) throw this.damaged(`${entry.name} holds no hash`)
    if (digest !== undefined && kept !== `${digest}\n`) {
      throw this.damaged(`the hash of its bytes is not the one in ${entry.name}`)
    }
  }

  async #end(): Promise<undefined> {
    const rest = Buffer.concat([Buffer.alloc(paddingOf(SUM_BYTES)), TAR_END])
    const found = await this.#exactly(rest.length)
    if (!found.equals(rest) || this.#at !== this.#size) {
      throw this.damaged("it does not end where it should")
    }
  }

  async #exactly(bytes: number): Promise<Buffer> {
    return this.#fill(Buffer.allocUnsafe(bytes))
  }

  async #fill(target: Buffer): Promise<Buffer> {
    for (let filled = 0; filled < target.length; ) {
      const { bytesRead } = await this.#file.read(target, filled, target.length - filled, this.#at)
      if (bytesRead === 0) throw this.#truncated()
      filled += bytesRead
      this.#at += bytesRead
    }
    return target
  }
}
