import { afterAll, beforeAll, expect, test } from "bun:test"
import { existsSync, readdirSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { binary, makeHome, runBinary, startBelfry } from "../harness/binary"
import { sizes } from "../harness/sizes"
import { enlarge } from "./backup-box"
import { fileLimit } from "./small-disk"

const home = makeHome()
const data_dir = join(home, "belfry")
const backups = join(data_dir, "backups")
const LARGE_MB = 24

const belfry = (...words: string[]) =>
  runBinary([...words, "--data-dir", data_dir, "--set", "storage.min_free_mb=0"], { home })

const archives = () => readdirSync(backups).filter((name) => name.endsWith(".tar"))
const drafts = () => readdirSync(backups).filter((name) => name.endsWith(".draft"))

beforeAll(async () => {
  expect((await belfry("init")).code).toBe(0)
  enlarge(data_dir, LARGE_MB)
  expect((await belfry("backup", "create")).code).toBe(0)
})
afterAll(() => rmSync(home, { recursive: true, force: true }))

/** Kills a backup with SIGKILL as soon as a draft of this ending has the size. */
async function killedAt(ending: string, bytes: number): Promise<boolean> {
  const words = ["backup", "create", "--data-dir", data_dir, "--set", "storage.min_free_mb=0"]
  const child = Bun.spawn({
    cmd: [binary, ...words],
    env: { PATH: process.env.PATH, HOME: home, XDG_DATA_HOME: join(home, "data") },
    stdout: "ignore",
    stderr: "ignore",
  })
  while (child.exitCode === null && child.signalCode === null) {
    const draft = readdirSync(backups).find((name) => name.endsWith(ending))
    const size = draft
      ? (statSync(join(backups, draft), { throwIfNoEntry: false })?.size ?? -1)
      : -1
    if (size >= bytes) child.kill("SIGKILL")
    await Bun.sleep(1)
  }
  await child.exited
  return child.signalCode === "SIGKILL"
}

const MB = 1024 * 1024

test("killed at any step, a backup leaves the earlier ones whole, and the next one works", async () => {
  const steps: [string, number][] = [
    [".db.draft", 0],
    [".db.draft", (LARGE_MB / 2) * MB],
    [".tar.draft", 0],
    [".tar.draft", (LARGE_MB / 2) * MB],
  ]
  for (let round = 0; round < sizes.backup_kills; round++) {
    for (const [ending, bytes] of steps) {
      const before = archives()
      const was_killed = await killedAt(ending, bytes)
      expect(archives().length).toBe(was_killed ? before.length : before.length + 1)
      for (const name of before) expect(existsSync(join(backups, name))).toBe(true)
    }
  }
  const verified = await belfry("backup", "verify", "--json=path")
  expect([verified.code, verified.stderr]).toEqual([0, ""])
  expect((await belfry("backup", "create")).code).toBe(0)
  expect(drafts()).toEqual([])
})

test("a disk that is full at any step is told with exit 74, and the earlier ones stay", async () => {
  const before = archives()
  for (const limit_mb of [1, LARGE_MB / 2, LARGE_MB + 1]) {
    const words = ["backup", "create", "--data-dir", data_dir]
    const refused = await runBinary(words, { home, wrap: fileLimit(limit_mb) })
    expect([limit_mb, refused.code]).toEqual([limit_mb, 74])
    expect(refused.stderr).toContain('"error"')
  }
  expect(archives()).toEqual(before)
  expect(drafts()).toEqual([])
  expect((await belfry("backup", "verify")).code).toBe(0)
})

test("beside a server, which goes on when the backup is killed with it", async () => {
  const args = ["--data-dir", data_dir]
  const server = await startBelfry({ home, args })
  const made = await belfry("backup", "create", "--json")
  expect([made.code, made.stderr]).toEqual([0, ""])
  expect(JSON.parse(made.stdout)).toMatchObject({ verified: true })
  const before = archives()

  const asked = belfry("backup", "create")
  while (drafts().length === 0) await Bun.sleep(1)
  server.kill("SIGKILL")
  await server.exited
  expect((await asked).code).toBe(75)
  for (const name of before) expect(existsSync(join(backups, name))).toBe(true)

  await using again = await startBelfry({ home, args })
  // The job begins anew by itself.
  while (archives().length <= before.length) await Bun.sleep(50)
  expect((await again.cli("backup", "verify", "--data-dir", data_dir)).code).toBe(0)
})
