import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { readFile, stat } from "node:fs/promises"
import { basename, resolve } from "node:path"
import { syncPath } from "../../src/core/small-file"
import { ELF_HEAD_BYTES, platformOf } from "../../src/lib/elf"
import {
  digestOf,
  MinisignError,
  type MinisignPublicKey,
  readPublicKey,
  readSignature,
  verifyDigest,
} from "../../src/lib/minisign"
import { download } from "../lib/download"
import { version } from "../lib/environment"
import { exits, Failure, usage } from "../lib/errors"
import { unreadable } from "../lib/input"

/** Put there by the build of a release: the second line of the maintainers' `minisign.pub`. */
declare const BELFRY_RELEASE_KEY: string | undefined

/** The program in the archive of a release. */
const PROGRAM = "belfry"
const SIGNATURE = ".minisig"
const MOST_SIGNATURE_BYTES = 16_384
const MOST_ARCHIVE_BYTES = 512 * 1024 * 1024

interface WantedRelease {
  /** A file, or an https URL. */
  source: string
  /** The text of a key, or a file with one, in the place of the key of this binary. */
  public_key: string | undefined
  onBytes: (bytes: number) => void
}

interface ReleaseFacts {
  version: string
  /** `linux-x64`, `linux-arm64-musl` … */
  platform: string
  /** The name of the archive. */
  file: string
}

/** A release whose signature is right and that is meant for this machine, by the facts that are signed with it. */
export interface CheckedRelease extends ReleaseFacts {
  /** The bytes that were checked: the file itself may be exchanged later. */
  archive: Uint8Array
  key_id: string
}

/**
 * Reads or fetches the archive and its signature, and checks the signature before anything else. Throws Failure for a
 * wrong signature, another platform, and a version that is not newer.
 */
export async function checkRelease(wanted: WantedRelease): Promise<CheckedRelease> {
  const key = keyFor(wanted.public_key)
  const { source } = wanted
  const signed = await (isUrl(source) ? fetchArchive(wanted) : readArchive(source))
  const facts = await signedFacts(signed, source, key)
  await requirePlatform(facts)
  requireNewer(facts)
  return { ...facts, archive: signed.archive, key_id: key.id }
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

interface SignedArchive {
  archive: Uint8Array
  signature: string
}

/** The signature first: without one nothing else is fetched. */
async function fetchArchive({ source, onBytes }: WantedRelease): Promise<SignedArchive> {
  if (!URL.canParse(source))
    throw usage(`${source} is not a URL`, "name a file, or an https:// URL")
  const beside = new URL(source)
  beside.pathname += SIGNATURE
  const signature = await download(beside, { most_bytes: MOST_SIGNATURE_BYTES })
  const archive = await download(new URL(source), { most_bytes: MOST_ARCHIVE_BYTES, onBytes })
  return { archive, signature: signature.toString() }
}

async function readArchive(source: string): Promise<SignedArchive> {
  const path = resolve(source)
  const refuse = (error: unknown): never => {
    throw unreadable(error, source, "FILE")
  }
  const found = await stat(path).catch(refuse)
  const which = "name the archive of a release"
  if (!found.isFile()) throw usage(`${source} is not a file`, which)
  if (found.size > MOST_ARCHIVE_BYTES)
    throw usage(`${source} has more than ${MOST_ARCHIVE_BYTES} bytes`, which)
  const beside = path + SIGNATURE
  if (!statSync(beside, { throwIfNoEntry: false })?.isFile()) {
    const hint = "put the .minisig file of the release beside the archive"
    throw new Failure(exits.no_input, "no_signature", `There is no file ${beside}.`, { hint })
  }
  const signature = await readFile(beside, "utf8").catch(refuse)
  return { archive: await readFile(path).catch(refuse), signature }
}

async function signedFacts(
  { archive, signature }: SignedArchive,
  source: string,
  key: MinisignPublicKey,
): Promise<ReleaseFacts> {
  try {
    return factsIn(verifyDigest(key, readSignature(signature), await digestOf([archive])))
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

async function requirePlatform({ platform, file }: ReleaseFacts): Promise<void> {
  const head = await Bun.file(process.execPath).slice(0, ELF_HEAD_BYTES).bytes()
  const own = platformOf(Buffer.from(head))
  if (own === platform) return
  const message = `${file} is for ${platform}, but this machine runs ${own ?? process.platform}.`
  const hint = `take the archive for ${own} of the same release`
  throw new Failure(exits.conflict, "wrong_platform", message, { hint })
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
  const program = await programIn(release.archive)
  // Closed when it returns: a file that is still open for writing cannot be started (ETXTBSY).
  writeFileSync(target, await program.bytes(), { mode: 0o755 })
  syncPath(target)
  const said = Bun.spawnSync([target, "--version"], { stdin: "ignore", timeout: 30_000 })
  const found = said.stdout.toString().trim()
  if (said.success && found === release.version) return
  const reason = said.success ? `it calls itself "${found}"` : said.stderr.toString().trim()
  throw bad(`The ${PROGRAM} of ${release.file} does not run here: ${reason || "it ends at once"}.`)
}

async function programIn(archive: Uint8Array): Promise<File> {
  try {
    const files = await new Bun.Archive(archive).files(PROGRAM)
    const program = files.get(PROGRAM)
    if (program) return program
  } catch (error) {
    throw bad(`The archive is damaged: ${(error as Error).message}.`)
  }
  throw bad(`The archive has no file "${PROGRAM}".`)
}

const bad = (message: string) => new Failure(exits.failed, "bad_release", message)
