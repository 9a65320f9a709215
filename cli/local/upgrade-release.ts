import {
  closeSync,
  createReadStream,
  constants as files,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { copyFile, stat } from "node:fs/promises"
import { basename, resolve } from "node:path"
import { ELF_HEAD_BYTES, platformOf } from "../../src/lib/elf"
import {
  digestOf,
  MinisignError,
  type MinisignPublicKey,
  readPublicKey,
  readSignature,
  verifyDigest,
} from "../../src/lib/minisign"
import { syncPath } from "../../src/operations/upgrade/journal"
import { download } from "../lib/download"
import { version } from "../lib/environment"
import { exits, Failure, usage } from "../lib/errors"
import { unreadable } from "../lib/input"

/** Put there by the build of a release: the second line of the maintainers' `minisign.pub`. */
declare const BELFRY_RELEASE_KEY: string | undefined

/** The program in the archive of a release. */
const PROGRAM = "belfry"
/** The end of the name of a signature. */
export const SIGNATURE = ".minisig"
const MOST_SIGNATURE_BYTES = 16_384
const MOST_ARCHIVE_BYTES = 512 * 1024 * 1024

interface WantedRelease {
  /** A file, or an https URL. */
  source: string
  /** The text of a key, or a file with one, in the place of the key of this binary. */
  public_key: string | undefined
  /** Where the archive goes, and its signature beside it: a folder that only this user can write to. */
  target: string
  onBytes: (bytes: number) => void
}

/** A release whose signature is right and that is meant for this machine, by the facts that are signed with it. */
export interface CheckedRelease {
  version: string
  /** `linux-x64`, `linux-arm64-musl` … */
  platform: string
  /** The name of the archive. */
  file: string
  /** The archive on this machine. */
  path: string
  key_id: string
}

/**
 * Fetches or copies the archive and its signature to `target`, and checks the signature before anything
 * else. Throws Failure for a wrong signature, another platform, and a version that is not newer.
 */
export async function checkRelease(wanted: WantedRelease): Promise<CheckedRelease> {
  const key = keyFor(wanted.public_key)
  const { target: path, source } = wanted
  await fetchArchive(wanted)
  const facts = await signedFacts(path, source, key)
  requirePlatform(facts)
  requireNewer(facts)
  return { ...facts, path, key_id: key.id }
}

function keyFor(given: string | undefined): MinisignPublicKey {
  if (given === undefined) {
    if (typeof BELFRY_RELEASE_KEY === "string") return readPublicKey(BELFRY_RELEASE_KEY)
    throw usage(
      "This binary was built from sources, so it knows no key of releases.",
      "give the key of your releases with --public-key",
    )
  }
  try {
    const is_file = statSync(given, { throwIfNoEntry: false })?.isFile()
    return readPublicKey(is_file ? readFileSync(given, "utf8") : given)
  } catch (error) {
    if (!(error instanceof MinisignError)) throw error
    throw usage(`--public-key: ${error.message}`, "give a file minisign.pub, or its second line")
  }
}

const isUrl = (source: string) => /^https?:\/\//i.test(source)

/** The signature first: without one nothing else is fetched. */
async function fetchArchive({ source, target, onBytes }: WantedRelease): Promise<void> {
  rmSync(target, { force: true })
  rmSync(target + SIGNATURE, { force: true })
  if (!isUrl(source)) return copyArchive(source, target)
  if (!URL.canParse(source))
    throw usage(`${source} is not a URL`, "name a file, or an https:// URL")
  const url = new URL(source)
  const signature = new URL(source)
  signature.pathname += SIGNATURE
  await download(signature, target + SIGNATURE, { most_bytes: MOST_SIGNATURE_BYTES })
  await download(url, target, { most_bytes: MOST_ARCHIVE_BYTES, onBytes })
}

/** What is checked is what is unpacked: a file elsewhere may be exchanged in between. */
async function copyArchive(source: string, target: string): Promise<void> {
  const path = resolve(source)
  const refuse = (error: unknown): never => {
    throw unreadable(error, source, "FILE")
  }
  const found = await stat(path).catch(refuse)
  if (!found.isFile()) throw usage(`${source} is not a file`, "name the archive of a release")
  const beside = path + SIGNATURE
  if (!statSync(beside, { throwIfNoEntry: false })?.isFile()) {
    const hint = "put the .minisig file of the release beside the archive"
    throw new Failure(exits.no_input, "no_signature", `There is no file ${beside}.`, { hint })
  }
  await copyFile(beside, target + SIGNATURE).catch(refuse)
  await copyFile(path, target, files.COPYFILE_FICLONE).catch(refuse)
}

type ReleaseFacts = Omit<CheckedRelease, "path" | "key_id">

async function signedFacts(
  path: string,
  source: string,
  key: MinisignPublicKey,
): Promise<ReleaseFacts> {
  try {
    const signature = readSignature(readFileSync(path + SIGNATURE, "utf8"))
    return factsIn(verifyDigest(key, signature, await digestOf(createReadStream(path))))
  } catch (error) {
    if (!(error instanceof MinisignError)) throw error
    const name = basename(isUrl(source) ? new URL(source).pathname : source)
    const message = `${name} is not used: ${error.message}`
    const hint = "download the archive and its .minisig again, from the page of the release"
    throw new Failure(exits.failed, "bad_signature", message, { hint })
  }
}

/** `version:0.2.0`, `platform:linux-x64`, `file:…`, with tabs between them as minisign has them. */
function factsIn(comment: string): ReleaseFacts {
  const pairs = comment.split("\t").map((part) => part.split(/:(.*)/s))
  const { version, platform, file } = Object.fromEntries(pairs) as Partial<ReleaseFacts>
  if (version && platform && file && /^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
    return { version, platform, file }
  throw new MinisignError("malformed", "The signature names no version and platform of a release.")
}

function requirePlatform({ platform, file }: ReleaseFacts): void {
  const own = platformOf(headOf(process.execPath))
  if (own === platform) return
  const message = `${file} is for ${platform}, but this machine runs ${own ?? process.platform}.`
  const hint = `take the archive for ${own} of the same release`
  throw new Failure(exits.conflict, "wrong_platform", message, { hint })
}

function headOf(path: string): Buffer {
  const head = Buffer.alloc(ELF_HEAD_BYTES)
  const file = openSync(path, "r")
  try {
    return head.subarray(0, readSync(file, head))
  } finally {
    closeSync(file)
  }
}

/** An old release with its right signature may have a hole that a newer one mended. */
function requireNewer({ version: there }: ReleaseFacts): void {
  const order = Bun.semver.order(there, version)
  if (order > 0) return
  const message =
    order === 0 ? `This is version ${version} already.` : `${there} is older than ${version}.`
  const hint = order === 0 ? undefined : "to go back, restore a backup with the older version"
  throw new Failure(exits.conflict, "not_newer", message, hint ? { hint } : {})
}

/**
 * Writes the program of the release to `target`, and makes sure that it runs here and is the version that
 * was signed.
 */
export async function stageProgram(release: CheckedRelease, target: string): Promise<void> {
  rmSync(target, { force: true })
  const program = await programIn(release.path)
  // Closed when it returns: a file that is still open for writing cannot be started (ETXTBSY).
  writeFileSync(target, await program.bytes(), { mode: 0o755 })
  syncPath(target)
  const said = Bun.spawnSync([target, "--version"], { stdin: "ignore", timeout: 30_000 })
  const found = said.stdout.toString().trim()
  if (said.success && found === release.version) return
  const reason = said.success ? `it calls itself "${found}"` : said.stderr.toString().trim()
  throw bad(`The ${PROGRAM} of ${release.file} does not run here: ${reason || "it ends at once"}.`)
}

async function programIn(archive: string): Promise<File> {
  try {
    const files = await new Bun.Archive(await Bun.file(archive).bytes()).files(PROGRAM)
    const program = files.get(PROGRAM)
    if (program) return program
  } catch (error) {
    throw bad(`The archive is damaged: ${(error as Error).message}.`)
  }
  throw bad(`The archive has no file "${PROGRAM}".`)
}

const bad = (message: string) => new Failure(exits.failed, "bad_release", message)
