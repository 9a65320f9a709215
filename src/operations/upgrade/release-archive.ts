import { createReadStream, createWriteStream } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import { pipeline } from "node:stream/promises"
import { createGunzip, createGzip } from "node:zlib"
import { BLOCK_BYTES, paddingOf, readTarHeader, TAR_END, tarHeader } from "../../lib/ustar"

/** The program in the archive of a release. */
export const PROGRAM = "belfry"
const PROGRAM_MODE = 0o755
const TEXT_MODE = 0o644

/** A binary has 130 MB. What promises more is no release of ours. */
const MOST_PROGRAM_BYTES = 512 * 1024 * 1024

/** The file is no archive of a release. The message says why. */
export class ReleaseError extends Error {
  override readonly name = "ReleaseError"
}

interface ReleaseEntry {
  name: string
  path: string
}

/**
 * Writes `belfry` (0755) and the texts (0644) as a tar file, packed with gzip. The same files and time give
 * the same bytes.
 */
export async function writeRelease(
  target: string,
  entries: readonly ReleaseEntry[],
  modified: number,
): Promise<void> {
  async function* parts() {
    for (const { name, path } of entries) {
      const { size } = Bun.file(path)
      yield tarHeader({ name, size, modified, mode: name === PROGRAM ? PROGRAM_MODE : TEXT_MODE })
      yield* createReadStream(path)
      yield Buffer.alloc(paddingOf(size))
    }
    yield TAR_END
  }
  await pipeline(parts, createGzip(), createWriteStream(target, { mode: 0o644 }))
}

/**
 * Writes the program of an archive to `target`, new and synced, of mode 0755. Throws ReleaseError for what
 * is no such archive; then the target must not be used.
 */
export async function unpackProgram(archive: string, target: string): Promise<void> {
  const unpacked = createReadStream(archive).pipe(createGunzip())
  const file = await open(target, "wx", PROGRAM_MODE)
  try {
    const reader = new TarReader(unpacked)
    let found = false
    for (;;) {
      const entry = await reader.next()
      if (!entry) break
      const is_program = entry.name === PROGRAM
      if (is_program && (found || entry.size > MOST_PROGRAM_BYTES))
        throw new ReleaseError(`The archive has no right program: ${entry.size} bytes.`)
      found ||= is_program
      await reader.copy(entry.size, is_program ? file : undefined)
    }
    if (!found) throw new ReleaseError(`The archive has no file "${PROGRAM}".`)
    await file.chmod(PROGRAM_MODE)
    await file.sync()
  } catch (error) {
    if (error instanceof ReleaseError || isDisk(error)) throw error
    throw new ReleaseError(`The archive is damaged: ${(error as Error).message}.`)
  } finally {
    unpacked.destroy()
    await file.close()
  }
}

const isDisk = (error: unknown) =>
  error instanceof Error && "code" in error && /^E[A-Z]+$/.test(String(error.code))

/** The entries of a tar file that comes in pieces. */
class TarReader {
  readonly #parts: AsyncIterator<Buffer>
  #rest: Buffer = Buffer.alloc(0)

  constructor(stream: AsyncIterable<Buffer>) {
    this.#parts = stream[Symbol.asyncIterator]()
  }

  async next(): Promise<{ name: string; size: number } | undefined> {
    const header = await this.#exactly(BLOCK_BYTES)
    if (header.every((byte) => byte === 0)) return undefined
    const entry = readTarHeader(header, [PROGRAM_MODE, TEXT_MODE])
    if (!entry || !("name" in entry)) throw new ReleaseError("The archive is not one of a release.")
    return entry
  }

  /** Moves past the bytes of an entry, and writes them where there is a file. */
  async copy(size: number, file: FileHandle | undefined): Promise<void> {
    for (let left = size; left > 0; ) {
      if (this.#rest.length === 0) await this.#more()
      const part = this.#rest.subarray(0, left)
      this.#rest = this.#rest.subarray(part.length)
      left -= part.length
      await file?.writeFile(part)
    }
    await this.#exactly(paddingOf(size))
  }

  async #exactly(count: number): Promise<Buffer> {
    while (this.#rest.length < count) await this.#more()
    const found = this.#rest.subarray(0, count)
    this.#rest = this.#rest.subarray(count)
    return found
  }

  async #more(): Promise<void> {
    const { value, done } = await this.#parts.next()
    if (done) throw new ReleaseError("The archive is cut off.")
    this.#rest = Buffer.concat([this.#rest, value])
  }
}
