import { expect, test } from "bun:test"
import { createReadStream, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { checkRelease } from "../../cli/local/upgrade-release"
import { ELF_HEAD_BYTES, platformOf } from "../../src/lib/elf"
import { digestOf } from "../../src/lib/minisign"
import { leftover } from "../harness/leftovers"
import { newKeyPair, publicKeyText, signDigest } from "../harness/minisign-signing"
import { releaseComment } from "../harness/release-archive"

const version = "99.1.0"

/** An archive of a release for this machine, with its signature beside it. */
async function signedArchive() {
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-release-")))
  const head = await Bun.file(process.execPath).slice(0, ELF_HEAD_BYTES).bytes()
  const facts = { version, platform: platformOf(Buffer.from(head)) ?? "", file: "a.tar.gz" }
  const source = join(folder, facts.file)
  const pair = newKeyPair()
  writeFileSync(source, "signed bytes")
  const digest = await digestOf(createReadStream(source))
  writeFileSync(`${source}.minisig`, signDigest(pair, digest, releaseComment(facts)))
  const wanted = { source, public_key: publicKeyText(pair), onBytes: () => {} }
  return { folder, source, check: (other = {}) => checkRelease({ ...wanted, ...other }) }
}

test("what is unpacked later is what was checked, also where the file is exchanged meanwhile", async () => {
  const { source, check } = await signedArchive()
  const { archive, version: found } = await check()
  writeFileSync(source, "other bytes")
  expect([found, Buffer.from(archive).toString()]).toEqual([version, "signed bytes"])
})

test("a file that was changed after it was signed is refused", async () => {
  const { source, check } = await signedArchive()
  writeFileSync(source, "other bytes")
  expect(await check().catch((error) => error)).toMatchObject({ code: "bad_signature" })
})

test("a file that is too large for a release is refused before it is read", async () => {
  const { source, check } = await signedArchive()
  truncateSync(source, 512 * 1024 * 1024 + 1)
  const { code, message } = await check().catch((error) => error)
  expect([code, message]).toEqual(["usage", `${source} has more than 536870912 bytes`])
})

test("what is no file is refused at once, and so is a signature that is none", async () => {
  const { folder, source, check } = await signedArchive()
  const refused = async (other = {}) => check(other).catch(({ code, message }) => [code, message])
  const no_key = ["usage", expect.stringContaining("not a public key of minisign")]
  expect(await refused({ public_key: folder })).toEqual(no_key)
  const no_url = ["usage", "https:// is not a URL"]
  expect(await refused({ source: "https://" })).toEqual(no_url)
  rmSync(`${source}.minisig`)
  expect(Bun.spawnSync(["mkfifo", `${source}.minisig`]).exitCode).toBe(0)
  expect(await refused()).toEqual(["no_signature", expect.stringContaining(".minisig")])
  rmSync(source)
  expect(Bun.spawnSync(["mkfifo", source]).exitCode).toBe(0)
  expect(await refused()).toEqual(["usage", expect.stringContaining("is not a file")])
})
