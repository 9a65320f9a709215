import { expect, setDefaultTimeout, test } from "bun:test"
import { createReadStream, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import manifest from "../../package.json" with { type: "json" }
import { digestOf, readPublicKey, readSignature, verifyDigest } from "../../src/lib/minisign"
import { leftover } from "./leftovers"
import { root } from "./migrations"
import { newKeyPair, secretKeyText } from "./minisign-signing"
import { releaseComment } from "./release-archive"
import { sizes } from "./sizes"

setDefaultTimeout(900_000) // it compiles twice, and starts what it compiled

const OWN = `linux-${process.arch}`
const OTHER = OWN === "linux-x64" ? "linux-arm64" : "linux-x64"

test.skipIf(!sizes.releases)(
  "a release has a signed archive that works, its checksums and a bill of materials",
  async () => {
    const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-release-")))
    const file = (name: string) => join(folder, name)
    writeFileSync(file("key"), secretKeyText(newKeyPair()))
    writeFileSync(file("npm"), "#!/bin/sh\necho no network >&2\nexit 1\n", { mode: 0o755 })
    const flags = ["--key", file("key"), "--out", folder, "--runtimes", file("runtimes")]
    const tool = [process.execPath, join(root, "test/harness/release.ts"), ...flags]
    const child = Bun.spawn([...tool, "--targets", `${OWN},${OTHER}`], {
      env: { ...process.env, PATH: `${folder}:${process.env.PATH}` },
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    })
    const said = await child.stderr.text()
    expect(await child.exited).toBe(1)
    expect(said).toContain(`${OTHER} was NOT built`)

    const name = `belfry-${manifest.version}-${OWN}.tar.gz`
    const key = readPublicKey(readFileSync(file("minisign.pub"), "utf8"))
    const signature = readSignature(readFileSync(file(`${name}.minisig`), "utf8"))
    const comment = verifyDigest(key, signature, await digestOf(createReadStream(file(name))))
    const facts = { version: manifest.version, platform: OWN, file: name }
    expect(comment).toBe(releaseComment(facts))
    expect(Bun.spawnSync(["sha256sum", "-c", "SHA256SUMS"], { cwd: folder }).success).toBe(true)
    const bill = JSON.parse(readFileSync(file(`belfry-${manifest.version}.cdx.json`), "utf8"))
    expect(bill.components.map((one: { name: string }) => one.name)).toContain("elysia")

    expect(Bun.spawnSync(["tar", "-xzf", name], { cwd: folder }).success).toBe(true)
    const version = Bun.spawnSync([file("belfry"), "--version"])
    expect(version.stdout.toString()).toBe(`${manifest.version}\n`)
  },
)
