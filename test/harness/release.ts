/**
 * `./install.sh release --key minisign.key` builds the archives of a release into `dist/release`: one for
 * each platform, their checksums, a signature of each, and the bill of materials. It tells which platform's
 * runtime could not be had, and then ends with 1.
 */
import { createHash } from "node:crypto"
import {
  createReadStream,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { basename, join, resolve } from "node:path"
import { parseArgs } from "node:util"
import manifest from "../../package.json" with { type: "json" }
import { platformOf } from "../../src/lib/elf"
import { digestOf } from "../../src/lib/minisign"
import { productionTree } from "./licences"
import { root } from "./migrations"
import {
  type MinisignSecretKey,
  publicKeyText,
  readSecretKey,
  signDigest,
} from "./minisign-signing"
import { archiveName, PROGRAM, releaseComment, writeRelease } from "./release-archive"
import { sbom } from "./sbom"

/** Our platforms, and the package that has Bun's program for each. */
const RUNTIMES: Record<string, string> = {
  "linux-x64": "@oven/bun-linux-x64",
  "linux-arm64": "@oven/bun-linux-aarch64",
  "linux-x64-musl": "@oven/bun-linux-x64-musl",
  "linux-arm64-musl": "@oven/bun-linux-aarch64-musl",
}

const say = (text: string) => process.stderr.write(`release: ${text}\n`)

function fail(text: string): never {
  say(text)
  process.exit(2)
}

const { values } = parseArgs({
  options: {
    key: { type: "string" },
    out: { type: "string", default: join(root, "dist/release") },
    runtimes: { type: "string", default: join(root, "dist/runtimes") },
    targets: { type: "string", default: Object.keys(RUNTIMES).join(",") },
  },
})
const platforms = values.targets.split(",")
const unknown = platforms.find((name) => !(name in RUNTIMES))
if (unknown !== undefined)
  fail(`--targets: "${unknown}" is not one of ${Object.keys(RUNTIMES).join(", ")}`)
if (values.key === undefined)
  fail("give the secret key with --key FILE. `minisign -G -W` makes a key without a password.")

const { version } = manifest
const out = resolve(values.out)
const key = readSecretKey(readFileSync(values.key, "utf8"))
const modified = commitTime()
mkdirSync(out, { recursive: true })
writeFileSync(join(out, "minisign.pub"), publicKeyText(key))
const [, public_key = ""] = publicKeyText(key).split("\n")

const made: string[] = []
const missing: string[] = []
for (const platform of platforms) {
  const runtime = await runtimeFor(platform)
  if (runtime === undefined) missing.push(platform)
  else made.push(await archiveFor(platform, runtime))
}
const bill = join(out, `belfry-${version}.cdx.json`)
const { name, license: licence } = manifest
const at = new Date(modified * 1000).toISOString()
const packages = productionTree(root)
writeFileSync(bill, sbom({ name, version, licence, at, runtime_version: Bun.version, packages }))
const sums = join(out, "SHA256SUMS")
const files = [...made, bill]
const lines = await Promise.all(
  files.map(async (path) => `${await sha256(path)}  ${basename(path)}`),
)
writeFileSync(sums, `${lines.join("\n")}\n`)
await sign(sums, `version:${version}\tfile:SHA256SUMS`, key)
say(`${made.length} archives in ${out}, signed with the key ${key.id}`)
for (const platform of missing)
  say(`${platform} was NOT built: ${RUNTIMES[platform]}@${Bun.version} could not be fetched`)
process.exit(missing.length > 0 ? 1 : 0)

/** The time of all files in the archives, so that they do not tell when they were built. */
function commitTime(): number {
  const given = process.env.SOURCE_DATE_EPOCH
  if (given !== undefined) return Number(given)
  const asked = Bun.spawnSync(["git", "log", "-1", "--format=%ct"], { cwd: root, stderr: "ignore" })
  return Number(asked.stdout.toString().trim() || 0)
}

/** Bun's program for a platform: this one, one that is kept, or one from the npm registry. */
async function runtimeFor(platform: string): Promise<string | undefined> {
  if (platformOf(headOf(process.execPath)) === platform) return process.execPath
  const folder = join(values.runtimes, `${platform}-${Bun.version}`)
  const program = join(folder, "package/bin/bun")
  if (existsSync(program)) return program
  say(`getting Bun ${Bun.version} for ${platform}`)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const wanted = `${RUNTIMES[platform]}@${Bun.version}`
  const packed = Bun.spawnSync(["npm", "pack", "--silent", wanted], { cwd: folder, stderr: "pipe" })
  const file = packed.stdout.toString().trim()
  const unpacked = packed.success && Bun.spawnSync(["tar", "-xzf", file], { cwd: folder }).success
  if (unpacked && platformOf(headOf(program)) === platform) return program
  say(`npm pack ${wanted}: ${packed.stderr.toString().trim().split("\n")[0] || "no right program"}`)
  rmSync(folder, { recursive: true, force: true })
  return undefined
}

function headOf(path: string): Buffer {
  const { stdout } = Bun.spawnSync(["head", "-c", "65536", path])
  return Buffer.from(stdout)
}

async function archiveFor(platform: string, runtime: string): Promise<string> {
  say(`building ${platform}`)
  const folder = join(out, `.${platform}`)
  mkdirSync(folder, { recursive: true })
  const program = join(folder, PROGRAM)
  compile(platform, runtime, program)
  if (platformOf(headOf(program)) !== platform) throw new Error(`${program} is not for ${platform}`)
  if (runtime === process.execPath) smoke(program)
  const file = archiveName(version, platform)
  const packing = join(folder, file)
  const texts = ["LICENSE"].map((text) => ({ name: text, path: join(root, text) }))
  await writeRelease(packing, [{ name: PROGRAM, path: program }, ...texts], modified)
  const target = join(out, file)
  renameSync(packing, target)
  rmSync(folder, { recursive: true, force: true })
  await sign(target, releaseComment({ version, platform, file }), key)
  return target
}

/** With the flags of `bun run build`, which are the only ones that are tested. */
function compile(platform: string, runtime: string, program: string) {
  const more = [
    `--target=bun-${platform}`,
    `--compile-executable-path='${runtime}'`,
    `--define BELFRY_RELEASE_KEY='"${public_key}"'`,
    `--outfile '${program}'`,
  ]
  const command = manifest.scripts.build.replace(/--outfile \S+$/, more.join(" "))
  const env = { ...process.env, PATH: `${resolve(process.execPath, "..")}:${process.env.PATH}` }
  const built = Bun.spawnSync(["sh", "-c", command], { cwd: root, env, stderr: "pipe" })
  if (!built.success) throw new Error(`${platform}: ${built.stderr.toString()}`)
}

/** What runs on this machine is tried here. */
function smoke(program: string) {
  const tried = Bun.spawnSync([program, "smoke", "--output", "table"], { stderr: "inherit" })
  process.stderr.write(tried.stdout)
  if (!tried.success) throw new Error("the binary does not work")
}

async function sign(path: string, comment: string, secret: MinisignSecretKey) {
  const digest = await digestOf(createReadStream(path))
  writeFileSync(`${path}.minisig`, signDigest(secret, digest, comment))
}

async function sha256(path: string): Promise<string> {
  const hash = createHash("sha256")
  for await (const part of createReadStream(path)) hash.update(part)
  return hash.digest("hex")
}
