import { createReadStream, existsSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { platformOf } from "../../src/lib/elf"
import { digestOf, newKeyPair, publicKeyText, signDigest } from "../../src/lib/minisign"
import { writeRelease } from "../../src/operations/upgrade/release-archive"
import { archiveName, releaseComment } from "../../src/operations/upgrade/release-comment"
import { leftover } from "./leftovers"
import { root } from "./migrations"

export const NEXT_VERSION = "99.1.0"

export interface NextRelease {
  /** The archive, with its signature beside it. */
  archive: string
  /** The second line of the key file. */
  public_key: string
  platform: string
  folder: string
  /** Signs a file as the release is signed, with facts of its own. */
  sign(path: string, facts?: { version?: string; platform?: string }): Promise<void>
}

/** Builds a later version (next-version.ts) and signs it with a new key. */
export async function nextRelease(): Promise<NextRelease> {
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-next-")))
  const program = join(folder, "belfry")
  await compile(program)
  const head = await Bun.file(program).slice(0, 65_536).bytes()
  const platform = platformOf(Buffer.from(head)) ?? ""
  const file = archiveName(NEXT_VERSION, platform)
  const archive = join(folder, file)
  await writeRelease(archive, [{ name: "belfry", path: program }], 0)
  const pair = newKeyPair()
  const sign: NextRelease["sign"] = async (path, facts = {}) => {
    const comment = releaseComment({ version: NEXT_VERSION, platform, file, ...facts })
    writeFileSync(
      `${path}.minisig`,
      signDigest(pair, await digestOf(createReadStream(path)), comment),
    )
  }
  await sign(archive)
  const [, public_key = ""] = publicKeyText(pair).split("\n")
  return { archive, public_key, platform, folder, sign }
}

async function compile(program: string) {
  const built = await Bun.build({
    entrypoints: [join(import.meta.dir, "next-version.ts"), join(root, "src/worker.ts")],
    root,
    format: "esm",
    splitting: true,
    minify: { whitespace: true, syntax: true },
    define: { "process.env.NODE_ENV": '"production"' },
    compile: { outfile: program, autoloadDotenv: false, autoloadBunfig: false },
    plugins: [
      {
        name: "next-version",
        setup(build) {
          build.onLoad({ filter: /\/package\.json$/ }, async ({ path }) => {
            const own = path === join(root, "package.json") ? { version: NEXT_VERSION } : {}
            const contents = JSON.stringify({ ...(await Bun.file(path).json()), ...own })
            return { contents, loader: "json" }
          })
        },
      },
    ],
  })
  if (!built.success || !existsSync(program)) throw new Error(built.logs.join("\n"))
}
