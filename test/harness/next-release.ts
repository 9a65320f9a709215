import {
  cpSync,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { platformOf } from "../../src/lib/elf"
import { digestOf } from "../../src/lib/minisign"
import { writeConsole } from "./console"
import { keptForRun } from "./kept-for-run"
import { leftover } from "./leftovers"
import { root } from "./migrations"
import {
  type MinisignSecretKey,
  newKeyPair,
  publicKeyText,
  readSecretKey,
  secretKeyText,
  signDigest,
} from "./minisign-signing"
import { archiveName, PROGRAM, releaseComment, writeRelease } from "./release-archive"

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

/** A later version (next-version.ts), signed with a new key. It is built once a run. */
export async function nextRelease(): Promise<NextRelease> {
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-next-")))
  const made = await keptForRun("next-release", build)
  if (made) cpSync(made, folder, { recursive: true })
  else await build(folder)
  const { platform, file } = await factsOf(folder)
  const pair = readSecretKey(readFileSync(join(folder, KEY), "utf8"))
  const sign: NextRelease["sign"] = (path, facts) =>
    signFile(pair, path, { version: NEXT_VERSION, platform, file, ...facts })
  const [, public_key = ""] = publicKeyText(pair).split("\n")
  return { archive: join(folder, file), public_key, platform, folder, sign }
}

const KEY = "key"

async function build(folder: string) {
  mkdirSync(folder, { recursive: true })
  const program = join(folder, PROGRAM)
  await compile(program)
  const { platform, file } = await factsOf(folder)
  const archive = join(folder, file)
  await writeRelease(archive, [{ name: PROGRAM, path: program }], 0)
  const pair = newKeyPair()
  writeFileSync(join(folder, KEY), secretKeyText(pair))
  await signFile(pair, archive, { version: NEXT_VERSION, platform, file })
}

/** For what it was built, and the name of its archive. */
async function factsOf(folder: string) {
  const head = await Bun.file(join(folder, PROGRAM)).slice(0, 65_536).bytes()
  const platform = platformOf(Buffer.from(head)) ?? ""
  return { platform, file: archiveName(NEXT_VERSION, platform) }
}

async function signFile(
  pair: MinisignSecretKey,
  path: string,
  facts: Parameters<typeof releaseComment>[0],
) {
  const digest = await digestOf(createReadStream(path))
  writeFileSync(`${path}.minisig`, signDigest(pair, digest, releaseComment(facts)))
}

const ONE_MORE = `
for (const list of [embedded.sqlite, embedded.postgres]) {
  const when = (list.at(-1)?.when ?? 0) + 1
  list.push({ tag: "9999_next", when, sql: "CREATE TABLE next_version (id integer)" })
}
`

async function compile(program: string) {
  await writeConsole(NEXT_VERSION)
  const built = await Bun.build({
    entrypoints: [join(import.meta.dir, "next-version.ts"), join(root, "src/worker.ts")],
    root,
    format: "esm",
    splitting: true,
    minify: { whitespace: true, syntax: true },
    define: { "process.env.NODE_ENV": '"production"' },
    bytecode: true,
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
          // In the module, so that the threads of the version know the migration, too.
          build.onLoad({ filter: /\/src\/store\/migrations\.ts$/ }, async ({ path }) => {
            const contents = `${await Bun.file(path).text()}${ONE_MORE}`
            return { contents, loader: "ts" }
          })
        },
      },
    ],
  })
  if (!built.success || !existsSync(program)) throw new Error(built.logs.join("\n"))
}
