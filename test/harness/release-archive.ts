import { createReadStream, createWriteStream } from "node:fs"
import { pipeline } from "node:stream/promises"
import { createGzip } from "node:zlib"
import { paddingOf, TAR_END, tarHeader } from "../../src/lib/ustar"

/** The program in the archive of a release. */
export const PROGRAM = "belfry"

/** The archive of one platform. */
export const archiveName = (version: string, platform: string): string =>
  `belfry-${version}-${platform}.tar.gz`

/** What the trusted comment of a release says. It is signed with the archive, and `belfry upgrade` reads it. */
export const releaseComment = (facts: { version: string; platform: string; file: string }) =>
  `version:${facts.version}\tplatform:${facts.platform}\tfile:${facts.file}`

/**
 * Writes `belfry` (0755) and the texts (0644) as a tar file, packed with gzip. The same files and time give
 * the same bytes.
 */
export async function writeRelease(
  target: string,
  entries: readonly { name: string; path: string }[],
  modified: number,
): Promise<void> {
  async function* parts() {
    for (const { name, path } of entries) {
      const { size } = Bun.file(path)
      yield tarHeader({ name, size, modified, mode: name === PROGRAM ? 0o755 : 0o644 })
      yield* createReadStream(path)
      yield Buffer.alloc(paddingOf(size))
    }
    yield TAR_END
  }
  await pipeline(parts, createGzip(), createWriteStream(target, { mode: 0o644 }))
}
