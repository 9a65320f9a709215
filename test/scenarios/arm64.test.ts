import { afterAll, expect, test } from "bun:test"
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import manifest from "../../package.json" with { type: "json" }
import { makeHome, runBinary, startBelfry } from "../harness/binary"
import { leftover } from "../harness/leftovers"
import { root } from "../harness/migrations"
import { newKeyPair, secretKeyText } from "../harness/minisign-signing"
import { missing, note } from "../harness/peers"
import { sizes } from "../harness/sizes"
import { lean } from "./serve"

/** Where Debian's libc6-arm64-cross has the libraries of arm64. */
const LIBRARIES = "/usr/aarch64-linux-gnu"

const folder = mkdtempSync(join(tmpdir(), "belfry-arm64-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The program of an arm64 release, run by qemu; undefined, and said, where it cannot be had. */
async function emulated(): Promise<string | undefined> {
  if (!sizes.releases || process.arch === "arm64" || missing("qemu-aarch64-static"))
    return undefined
  if (!existsSync(LIBRARIES)) return void note("needs libc6-arm64-cross (apt-get install it)")
  writeFileSync(join(folder, "key"), secretKeyText(newKeyPair()))
  const flags = ["--key", join(folder, "key"), "--out", folder, "--targets", "linux-arm64"]
  const tool = [process.execPath, join(root, "test/harness/release.ts"), ...flags]
  const child = Bun.spawn(tool, { stdin: "ignore", stdout: "ignore", stderr: "pipe" })
  const said = await child.stderr.text()
  if (said.includes("NOT built")) return void note(`a release for arm64: ${said.trim()}`)
  expect([await child.exited, said]).toEqual([0, said])
  const archive = join(folder, `belfry-${manifest.version}-linux-arm64.tar.gz`)
  expect(Bun.spawnSync(["tar", "-xzf", archive, "belfry"], { cwd: folder }).success).toBe(true)
  const script = join(folder, "run")
  const command = `qemu-aarch64-static -L ${LIBRARIES} ${join(folder, "belfry")}`
  writeFileSync(script, `#!/bin/sh\nexec ${command} "$@"\n`)
  chmodSync(script, 0o755)
  return script
}

const program = await emulated()

test.skipIf(!program)(
  "the release for arm64 starts, delivers a mail, makes a backup beside itself and restores it",
  async () => {
    const home = leftover(makeHome())
    const place = { home, env: lean, ...(program && { program }) }
    const version = await runBinary(["--version"], place)
    expect(version).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: "" })

    await using server = await startBelfry({ ...place, ready_timeout_ms: 300_000 })
    const mail = { from: "me@mailbox.test", to: "ann@mailbox.test", subject: "Hi", text: "hello" }
    const init = { method: "POST", body: JSON.stringify(mail) }
    const sent = await server.request("/v1/emails", init)
    expect(sent.status).toBe(201)
    const { id } = (await sent.json()) as { id: string }
    const status = async () => {
      const found = await server.request(`/v1/emails/${id}`)
      return ((await found.json()) as { data: { status: string } }).data.status
    }
    while ((await status()) !== "delivered") await Bun.sleep(100)

    const { data_dir } = server
    const made = await runBinary(["backup", "create", "--json", "--data-dir", data_dir], place)
    expect(made).toMatchObject({ code: 0, stderr: "" })
    const { path } = JSON.parse(made.stdout) as { path: string }
    const key = ["--master-key", join(data_dir, "master.key")]
    const copy = ["--data-dir", join(home, "copy")]
    const restored = await runBinary(["restore", path, ...key, ...copy], place)
    expect(restored).toMatchObject({ code: 0, stderr: "" })
    expect(await server.stop()).toBe(0)
  },
)
