import { afterEach, beforeAll, describe, expect, test } from "bun:test"
import { existsSync, readdirSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import manifest from "../../package.json" with { type: "json" }
import { receiver } from "../fakes/receiver"
import { NEXT_VERSION, type NextRelease, nextRelease } from "../harness/next-release"
import { expectNoneLost } from "../harness/nothing-lost"
import { PLANTED_SETTINGS, plant } from "../harness/planted"
import { sizes } from "../harness/sizes"
import { ended, type UpgradeBox, upgradeBox } from "./upgrade-box"
import { KILLS, killedInBackup, oldServerKilled, upgradeKilled } from "./upgrade-kills"

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
  const crowded = box.upgrade(release.archive, "--set", "storage.min_free_mb=10000000")
  expect(problemOf(await ended(crowded))).toMatchObject({
    code: "storage",
    message: expect.stringMatching(/has \d+ MB of free space, but the upgrade needs \d+ MB\.$/),
  })
  expect(readdirSync(box.data_dir)).not.toContain("backups")
  expect(await box.served()).toBe(OLD)
})

const keyOnly = async () => {
  const { newKeyPair, publicKeyText } = await import("../harness/minisign-signing")
  return { public_key: publicKeyText(newKeyPair()).split("\n")[1] ?? "" }
}

test("a release at a URL takes over under load, nothing acknowledged is lost, and no secret is told", async () => {
  using hook = receiver()
  const box = await newBox({ env: PLANTED_SETTINGS })
  const planted = await plant({ ...box, hook: hook.url })
  const folder = release.archive.slice(0, release.archive.lastIndexOf("/"))
  using files = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => new Response(Bun.file(join(folder, new URL(request.url).pathname))),
  })
  const load = box.traffic("example.test")
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
  const tried = hook.received.length
  await planted.send(box.url)
  await hook.arrived(tried + 1) // by the new version
  expect(await box.log()).not.toMatch(/svc_live_|held_after_restore/)
  expect(planted.shownIn(`${done.stdout}${done.stderr}${await box.log()}`)).toEqual([])
})

test.skipIf(sizes.upgrade_kills === 0)(
  "a server that was started with --hold holds nothing that it accepted since, when an upgrade starts it again",
  async () => {
    const box = await newBox({ words: ["--hold"] })
    const held = async () => (await box.log()).match(/open work to hold|starts held/g)?.length
    expect(await held()).toBe(1)
    expect(await ended(box.upgrade())).toMatchObject({ code: 0 })
    expect([await box.served(), await held()]).toEqual([NEXT_VERSION, 1])
  },
)

/** The program and the database are those of before. */
async function requireReturn(box: UpgradeBox) {
  await box.over()
  expect(await box.served()).toBe(OLD)
  const pending = await box.run("migrate", "--dry-run", "--json")
  expect(JSON.parse(pending.stdout)).toEqual({ engine: "sqlite", pending: [] })
}

const FAULTS = ["sick", "bad-migration", "hangs"]

test.each(FAULTS.slice(0, sizes.upgrade_faults))(
  "a new version that is %s gives its place back with the database of before",
  async (fault) => {
    const is_seen = fault !== "hangs" // as soon as it has ended
    const box = await newBox({ fault, env: { BELFRY_UPGRADE_READY: is_seen ? "90s" : "20s" } })
    const load = box.traffic()
    const failed = await ended(box.upgrade())
    expect([failed.code, problemOf(failed).code]).toEqual([1, "upgrade_undone"])
    await requireReturn(box)
    expect(await box.missing(await load.stop())).toEqual([])
  },
)

const SUPERVISED = [
  ["sick", "sick", OLD],
  ["healthy", "", NEXT_VERSION],
] as const

test.each(SUPERVISED.slice(0, sizes.upgrade_kills))(
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

const EITHER = [OLD, NEXT_VERSION]
/** What may serve in the end. A killed command may have come to the end before. */
const VERSIONS = {
  command: EITHER,
  "new server": EITHER,
  migration: [OLD],
  "old server": [NEXT_VERSION],
}

describe("kill -9", () => {
  test.each(KILLS.slice(0, sizes.upgrade_kills))(
    "of the $who at $at leaves one version that serves all that was acknowledged",
    async (kill) => {
      const box = await newBox(kill)
      const { version, missing } = await upgradeKilled(box, kill)
      expect(VERSIONS[kill.who]).toContain(version)
      expectNoneLost(missing)
      expect(existsSync(join(box.data_dir, "belfry.db.before-upgrade"))).toBe(false)
    },
  )

  test.skipIf(sizes.upgrade_kills === 0)(
    "of the command in its backup: the old one serves, and the next upgrade works",
    async () => {
      const box = await newBox()
      expect(await killedInBackup(box)).toEqual({
        ...{ code: 0, between: OLD, after: NEXT_VERSION },
        ...{ missing: [], drafts: [], verified: 0 },
      })
    },
  )

  test.each([true, false].slice(0, sizes.upgrade_faults))(
    "of the old server in the backup: the new one takes over (under a supervisor: %p)",
    async (is_supervised) => {
      const box = await newBox({ is_supervised })
      expect(await oldServerKilled(box)).toEqual({ code: 0, after: NEXT_VERSION, missing: [] })
      expect(readdirSync(join(box.folder, "bin")).sort()).toEqual(["belfry", "belfry.previous"])
    },
  )
})
