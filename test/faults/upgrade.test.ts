import { afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import manifest from "../../package.json" with { type: "json" }
import type { UpgradeStep } from "../../src/operations/upgrade/journal"
import { NEXT_VERSION, type NextRelease, nextRelease } from "../harness/next-release"
import { sizes } from "../harness/sizes"
import { ended, type UpgradeBox, upgradeBox } from "./upgrade-box"

setDefaultTimeout(180_000)

const OLD = manifest.version

let release: NextRelease
beforeAll(async () => {
  release = await nextRelease()
})

const open: UpgradeBox[] = []
afterEach(async () => {
  for (const box of open.splice(0)) await box[Symbol.asyncDispose]()
})

async function newBox(options: Omit<Parameters<typeof upgradeBox>[0], "release"> = {}) {
  const box = await upgradeBox({ release, ...options })
  open.push(box)
  return box
}

const problemOf = ({ stderr }: { stderr: string }) => {
  const [line = "{}"] = stderr.split("\n").filter((one) => one.startsWith('{"error"'))
  return (JSON.parse(line) as { error: { code: string; message: string } }).error
}

test("what is not a newer release for this machine is refused, and the server goes on", async () => {
  const box = await newBox()
  const path = join(box.folder, basename(release.archive))
  const refusal = async (...words: string[]) => problemOf(await ended(box.upgrade(path, ...words)))

  writeFileSync(path, "no archive")
  expect((await refusal()).code).toBe("no_signature")
  await release.sign(path)
  writeFileSync(path, "no Archive")
  expect(await refusal()).toMatchObject({
    code: "bad_signature",
    message: expect.stringContaining("does not fit the file"),
  })
  writeFileSync(path, "no archive")
  expect((await refusal()).code).toBe("bad_release")
  const foreign = release.platform === "linux-arm64" ? "linux-x64" : "linux-arm64"
  await release.sign(path, { platform: foreign })
  expect(await refusal()).toMatchObject({
    code: "wrong_platform",
    message: expect.stringContaining(`is for ${foreign}, but this machine runs`),
  })
  for (const version of [OLD, "0.0.1"]) {
    await release.sign(path, { version })
    expect((await refusal()).code).toBe("not_newer")
  }
  const other = { ...release, ...(await keyOnly()) }
  const words = [release.archive, "--public-key", other.public_key]
  expect((await box.run("upgrade", ...words)).stderr).toContain("is needed")
  expect((await box.run("upgrade", release.archive)).stderr).toContain("knows no key of releases")

  const checked = await ended(box.upgrade(release.archive, "--check"))
  const plan = { from_version: OLD, to_version: NEXT_VERSION, migrations: ["9999_next"] }
  expect(JSON.parse(checked.stdout)).toMatchObject({ ...plan, done: false, downtime_ms: null })
  const unwanted = await ended(box.upgrade(release.archive, "--no-migrate"))
  expect([unwanted.code, problemOf(unwanted).code]).toEqual([5, "migrations_needed"])
  expect(await box.served()).toBe(OLD)
})

const keyOnly = async () => {
  const { newKeyPair, publicKeyText } = await import("../../src/lib/minisign")
  return { public_key: publicKeyText(newKeyPair()).split("\n")[1] ?? "" }
}

test("a release at a URL takes over under load, and nothing acknowledged is lost", async () => {
  const box = await newBox()
  const folder = release.archive.slice(0, release.archive.lastIndexOf("/"))
  using files = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => new Response(Bun.file(join(folder, new URL(request.url).pathname))),
  })
  const load = box.traffic()
  const done = await ended(
    box.upgrade(`http://127.0.0.1:${files.port}/${basename(release.archive)}`),
  )
  expect(done).toMatchObject({ code: 0, stderr: "" })
  expect(JSON.parse(done.stdout)).toMatchObject({ done: true, migrations: ["9999_next"] })
  expect(await box.served()).toBe(NEXT_VERSION)
  const ids = await load.stop()
  expect(ids.length).toBeGreaterThan(20)
  expect(await box.missing(ids)).toEqual([])
  expect(existsSync(`${box.program}.previous`)).toBe(true)
  const left = readdirSync(join(box.data_dir, "upgrade"))
  expect(left.filter((name) => name.startsWith("release"))).toEqual([])
  const kept = readdirSync(join(box.data_dir, "backups")).filter((name) => name.endsWith(".tar"))
  expect(kept).toHaveLength(1)
  expect(await box.log()).not.toMatch(/svc_live_|held_after_restore/)
})

test.each(["sick", "bad-migration"].slice(0, sizes.upgrade_faults))(
  "a new version that is %s in its trial changes nothing",
  async (fault) => {
    const box = await newBox({ fault })
    const before = await uptime(box)
    const failed = await ended(box.upgrade())
    expect([failed.code, problemOf(failed).code]).toEqual([1, "trial_failed"])
    expect(await box.served()).toBe(OLD)
    expect(await uptime(box)).toBeGreaterThanOrEqual(before)
  },
)

const uptime = async ({ url }: UpgradeBox) =>
  ((await (await fetch(`${url}/healthz`)).json()) as { uptime_seconds: number }).uptime_seconds

/** The program and the database are those of before. */
async function demandReturn(box: UpgradeBox) {
  await box.over()
  expect(await box.served()).toBe(OLD)
  const pending = await box.run("migrate", "--dry-run", "--json")
  expect(JSON.parse(pending.stdout)).toEqual({ engine: "sqlite", pending: [] })
}

const LATE = ["sick-later", "bad-migration-later", "hangs-later"]

test.each(LATE.slice(0, sizes.upgrade_faults))(
  "a new version that is %s gives its place back with the database of before",
  async (fault) => {
    const box = await newBox({ fault, env: { BELFRY_UPGRADE_READY: "3s" } })
    const load = box.traffic()
    const failed = await ended(box.upgrade())
    expect([failed.code, problemOf(failed).code]).toEqual([1, "upgrade_undone"])
    await demandReturn(box)
    expect(await box.missing(await load.stop())).toEqual([])
  },
)

const SUPERVISED = [
  ["sick", "sick-later", OLD],
  ["healthy", "", NEXT_VERSION],
] as const

test.each(SUPERVISED.slice(0, sizes.upgrade_faults))(
  "under a supervisor a %s new version ends as it should",
  async (_, fault, version) => {
    const box = await newBox({ fault, is_supervised: true })
    const load = box.traffic()
    const done = await ended(box.upgrade())
    expect(done.code).toBe(version === OLD ? 1 : 0)
    expect(await box.served()).toBe(version)
    expect(await box.missing(await load.stop())).toEqual([])
  },
)

interface Kill {
  who: "command" | "new server"
  at: UpgradeStep
  fault: string
  is_supervised?: boolean
}

const KILLS: Kill[] = [
  { who: "command", at: "changing", fault: "slow" },
  { who: "new server", at: "starting", fault: "slow" },
  { who: "command", at: "starting", fault: "slow" },
  { who: "command", at: "changing", fault: "slow", is_supervised: true },
  { who: "command", at: "stopping", fault: "slow" },
  { who: "command", at: "copying", fault: "slow" },
  { who: "command", at: "returning", fault: "sick-later" },
  { who: "command", at: "starting", fault: "slow", is_supervised: true },
]

describe("kill -9", () => {
  test.each(KILLS.slice(0, sizes.upgrade_faults))(
    "of the $who at $at leaves one version that serves all that was acknowledged",
    async ({ who, at, fault, is_supervised = false }) => {
      const box = await newBox({ fault, is_supervised })
      const load = box.traffic()
      const command = box.upgrade()
      await box.step(at)
      if (who === "command") command.kill("SIGKILL")
      else process.kill(await probation(box), "SIGKILL")
      await ended(command)
      await box.over()
      const version = await box.served()
      expect([OLD, NEXT_VERSION]).toContain(version)
      expect(await box.missing(await load.stop())).toEqual([])
      expect(existsSync(join(box.data_dir, "belfry.db.before-upgrade"))).toBe(false)
    },
  )

  const OLD_SERVER = [
    ["the old server", false],
    ["the old server under a supervisor", true],
  ] as const
  test.each(OLD_SERVER.slice(0, sizes.upgrade_faults - 1))(
    "of %s in the trial: it serves again, and the new one takes over",
    async (_, is_supervised) => {
      const box = await newBox({ is_supervised, env: { BELFRY_UPGRADE_TRIAL: "3s" } })
      const load = box.traffic()
      const command = box.upgrade()
      const began = join(box.data_dir, "upgrade/trial/admin.sock")
      while (!existsSync(began)) await Bun.sleep(20)
      process.kill(Number(readFileSync(join(box.data_dir, "belfry.db.pid"), "utf8")), "SIGKILL")
      expect(await box.served()).toBe(OLD)
      expect((await ended(command)).code).toBe(0)
      expect(await box.served()).toBe(NEXT_VERSION)
      expect(await box.missing(await load.stop())).toEqual([])
    },
  )
})

async function probation({ data_dir }: UpgradeBox): Promise<number> {
  const path = join(data_dir, "upgrade/probation.pid")
  for (;;) {
    const text = existsSync(path) ? readFileSync(path, "utf8") : ""
    if (text !== "") return Number(text)
    await Bun.sleep(5)
  }
}
