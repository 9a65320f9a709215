import { expect, test } from "bun:test"
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { freshHome, onTerminal } from "./belfry"
import { belfry } from "./lines"

/** A folder with an archive, its key, and other files that look like one. */
async function backedUp() {
  const home = freshHome()
  const data_dir = join(home, "original")
  const local = ["--data-dir", data_dir, "--set", "storage.min_free_mb=0"]
  expect((await belfry(["init", ...local])).exit).toBe(0)
  const made = await belfry(["backup", "create", ...local])
  expect(made).toMatchObject({ exit: 0 })
  const archive = (JSON.parse(made.out) as { path: string }).path
  const key = join(data_dir, "master.key")
  const put = (name: string, content: string | Buffer) => {
    const path = join(home, name)
    writeFileSync(path, content, { mode: 0o600 })
    return path
  }
  const target = join(home, "restored")
  const restore = (file: string, ...words: string[]) => {
    const where = ["--data-dir", target, "--set", "storage.min_free_mb=0"]
    return belfry(["restore", file, ...where, ...words])
  }
  return { home, archive, key, target, put, restore }
}

const codeOf = ({ err }: { err: string }) =>
  (JSON.parse(err) as { error: { code: string; message: string } }).error

test("what is no backup, or has another key, is refused with its own error, and nothing is written", async () => {
  const { home, archive, key, target, put, restore } = await backedUp()
  const bytes = readFileSync(archive)
  const changed = Buffer.from(bytes)
  changed[9000] = (changed[9000] ?? 0) ^ 1
  const outside = Buffer.from(bytes)
  outside.write("../../outside", 0)
  const wrong = put("wrong.key", `${Buffer.alloc(32, 3).toString("base64")}\n`)
  const withKey = ["--master-key", key]
  const fifo = join(home, "fifo")
  expect(Bun.spawnSync(["mkfifo", fifo]).exitCode).toBe(0)
  const cases: [string, string, string[], number, string][] = [
    ["missing", "/nowhere/belfry.tar", withKey, 66, "There is no file"],
    ["foreign", put("text.tar", "hello"), withKey, 74, "is not a backup of Belfry"],
    ["a folder", home, withKey, 74, "is not a backup of Belfry"],
    ["a pipe", fifo, withKey, 74, "is not a backup of Belfry"],
    ["cut off", put("short.tar", bytes.subarray(0, 20_480)), withKey, 74, "cut off"],
    ["changed", put("changed.tar", changed), withKey, 74, "changed.tar"],
    ["leads outside", put("outside.tar", outside), withKey, 74, "outside.tar"],
    ["no key", archive, [], 2, "the master key of the backup is needed"],
    ["no key in it", archive, ["--master-key", put("text.key", "hello")], 2, "holds no master key"],
    ["an endless key", archive, ["--master-key", "/dev/zero"], 2, "holds no master key"],
    ["another key", archive, ["--master-key", wrong], 5, `but ${wrong} has `],
  ]
  for (const [name, file, words, exit, said] of cases) {
    const ended = await restore(file, ...words)
    expect([name, ended.exit, codeOf(ended).message]).toEqual([
      name,
      exit,
      expect.stringContaining(said),
    ])
    expect([name, existsSync(join(target, "belfry.db"))]).toEqual([name, false])
    if (exit === 74) expect([name, codeOf(ended).code]).toEqual([name, "archive"])
  }
  expect(existsSync(target) ? readdirSync(target) : []).not.toContain("restoring")
  const verified = await belfry(["backup", "verify", fifo, "--data-dir", target])
  expect([verified.exit, codeOf(verified).message]).toEqual([
    74,
    expect.stringContaining("is not a backup of Belfry"),
  ])
})

test("a dry run writes nothing, a restore lists the keys, and a second one is refused", async () => {
  const { archive, key, target, restore } = await backedUp()
  const rehearsed = await restore(archive, "--master-key", key, "--dry-run")
  expect(rehearsed.exit).toBe(0)
  expect(existsSync(target)).toBe(false)
  expect(JSON.parse(rehearsed.out)).toMatchObject({ engine: "sqlite", data_dir: target })

  const done = await restore(archive, "--master-key", key)
  expect(done).toMatchObject({ exit: 0 })
  expect(JSON.parse(done.out)).toMatchObject({
    held: { messages: 0, webhook_deliveries: 0, jobs: 0 },
    active_keys: 1,
    revoked_keys: 0,
    unknown_since: {
      since: (JSON.parse(rehearsed.out) as { created_at: string }).created_at,
      access: [
        { kind: "api_keys", count: 1, command: "belfry keys list" },
        { kind: "people", count: 0, names: [], newest_at: null, command: "belfry admin users" },
        { kind: "webhooks", count: 0, command: "belfry webhooks list" },
        { kind: "providers", count: 0, command: "belfry providers list" },
      ],
      refusals: [{ suppressions: 0, newest_suppression_at: null, subscribers: 0 }],
      projects: 1,
    },
    settings_file: join(target, "restored-config.json"),
  })
  const kept = JSON.parse(readFileSync(join(target, "restored-config.json"), "utf8"))
  expect(kept).toMatchObject({ "storage.min_free_mb": 0 })
  expect(readFileSync(join(target, "master.key"), "utf8")).toBe(readFileSync(key, "utf8"))
  const again = await restore(archive, "--master-key", key)
  expect([again.exit, codeOf(again).message]).toEqual([
    5,
    expect.stringContaining("is restored only where there is no database"),
  ])
})

test("people read what may have been revoked and suppressed since, with the command that shows it", async () => {
  const { archive, key, target } = await backedUp()
  const words = ["restore", archive, "--master-key", key, "--data-dir", target]
  const { exit, out: screen } = await onTerminal([...words, "--set", "storage.min_free_mb=0"])
  const out = Bun.stripANSI(screen)
  expect([exit, out]).toEqual([0, expect.stringContaining("is not in the backup")])
  expect(out).toContain("Settings are not restored")
  expect(out).toMatch(/WORKS AGAIN +COUNT +NEWEST +NAMES +LOOK WITH/)
  expect(out).toMatch(/API keys +1 .* belfry keys list/)
  expect(out).not.toContain("belfry webhooks list") // there is none
  expect(out).toMatch(/PROJECT +SUPPRESSED +LAST +UNSUBSCRIBED +LAST ONE +SUBSCRIBERS/)
  expect(out).toMatch(/ 0 +never +0 +never +0/)
})

test("parts of held work are chosen by words, and a wrong word is told", async () => {
  const { archive, key, target, restore } = await backedUp()
  expect((await restore(archive, "--master-key", key)).exit).toBe(0)
  const local = ["--data-dir", target]
  const purge = (...words: string[]) => belfry(["queue", "purge", ...words, ...local])
  const counted = await purge("held_after_restore", "--where", "kind=email", "--dry-run")
  expect(counted).toMatchObject({ exit: 0 })
  expect(JSON.parse(counted.out)).toEqual({
    ...{ queue: "held_after_restore", messages: 0 },
    ...{ webhook_deliveries: 0, jobs: 0 },
  })
  expect((await purge("held_after_restore")).exit).toBe(2) // not confirmed
  expect((await purge("email", "--yes")).exit).toBe(2)
  const many_days = `older_than=${"9".repeat(20)}d`
  for (const where of ["kind", "sort=x", "kind=email,kind=sms", "older_than=soon", many_days, ""]) {
    expect([where, (await purge("held_after_restore", "--where", where, "--yes")).exit]).toEqual([
      where,
      2,
    ])
  }
  const twice = await purge("held_after_restore", "--where", "kind=email,kind=sms", "--yes")
  expect(codeOf(twice).message).toBe("--where: kind is given twice")
  const empty = await purge("held_after_restore", "--where", "kind=", "--yes")
  expect([empty.exit, codeOf(empty).message]).toEqual([2, "--where: kind has no value"])
  expect((await purge("held_after_restore", "--where", "kind=mail", "--yes")).exit).toBe(7)
})
