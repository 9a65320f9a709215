import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { closeSync, openSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { program } from "../harness/program"
import { environment, freshHome } from "./belfry"
import { box } from "./box"
import { belfry } from "./lines"

test("a check that Ctrl-C ends leaves the archive, and nothing beside it", async () => {
  const data_dir = join(freshHome(), "belfry")
  const local = ["--data-dir", data_dir, "--set", "storage.min_free_mb=0"]
  expect((await belfry(["init", ...local])).exit).toBe(0)
  expect((await belfry(["backup", "create", ...local])).exit).toBe(0)
  const folder = join(data_dir, "backups")
  const before = readdirSync(folder)
  const child = Bun.spawn([...program, "backup", "verify", ...local], {
    env: environment(),
    stdout: "ignore",
    stderr: "pipe",
  })
  while (readdirSync(folder).length === before.length && child.exitCode === null) await Bun.sleep(1)
  child.kill("SIGINT")
  expect(await child.exited).toBe(130)
  const { error } = (await new Response(child.stderr).json()) as { error: { code: string } }
  expect(error.code).toBe("interrupted")
  expect(readdirSync(folder)).toEqual(before)
})

test("create and list say how many files a backup lacks", async () => {
  const data_dir = join(freshHome(), "belfry")
  const local = ["--data-dir", data_dir, "--set", "storage.min_free_mb=0"]
  expect((await belfry(["init", ...local])).exit).toBe(0)
  const create = (...words: string[]) => belfry(["backup", "create", ...local, ...words])
  expect(JSON.parse((await create()).out)).toMatchObject({ missing: 0 })
  {
    using database = new Database(join(data_dir, "belfry.db"))
    const insert = database.query("INSERT INTO message_files (message_id, sha256) VALUES (?, ?)")
    for (const name of ["a", "b"]) insert.run(Buffer.alloc(16, name), name.repeat(64))
  }
  const told = await create("--output", "table")
  expect([told.exit, told.out]).toEqual([
    0,
    expect.stringContaining("it lacks 2 files, missing or"),
  ])
  const listed = await belfry(["backup", "list", ...local, "--output", "table"])
  const lines = listed.out.split("\n").filter((line) => line.includes("belfry-20"))
  expect(lines.map((line) => line.includes("lacks 2 files"))).toEqual([true, false])
})

test("a copy is checked where nothing can be written beside it, with the data folder in its place", async () => {
  const data_dir = join(freshHome(), "belfry")
  const local = ["--data-dir", data_dir, "--set", "storage.min_free_mb=0"]
  expect((await belfry(["init", ...local])).exit).toBe(0)
  const { path } = JSON.parse((await belfry(["backup", "create", ...local])).out)
  const before = readdirSync(join(data_dir, "backups"))
  const file = openSync(path, "r")
  const beside = `/proc/${process.pid}/fd/${file}` // no folder can be made there, by anybody
  const { exit, out } = await belfry(["backup", "verify", beside, ...local])
  closeSync(file)
  expect([exit, JSON.parse(out).path]).toEqual([0, beside])
  expect(readdirSync(join(data_dir, "backups"))).toEqual(before)
})

test("a running server refuses a backup into another folder than its own", async () => {
  const home = freshHome()
  const data_dir = join(home, "box")
  const env = environment({
    HOME: home,
    ...{ BELFRY_SMTP_SUBMISSION_LISTEN: "127.0.0.1:0", BELFRY_SMTP_INBOUND_LISTEN: "127.0.0.1:0" },
    ...{ BELFRY_MAILBOX_LISTEN: "127.0.0.1:0", BELFRY_STORAGE_BALLAST_MB: "0" },
  })
  const words = ["up", "--port", "0", "--json", "--data-dir", data_dir]
  const cmd = [...program, ...words]
  const server = Bun.spawn(cmd, { env, stdout: "pipe", stderr: "ignore" })
  try {
    await server.stdout.getReader().read() // it is ready
    const create = (dir: string) =>
      belfry(["backup", "create", "--data-dir", data_dir, "--set", `backup.dir=${dir}`], { env })
    const refused = await create(join(home, "elsewhere"))
    expect([refused.exit, refused.out]).toEqual([5, ""])
    expect(refused.err).toContain("The running server writes its backups to")
    expect((await create(join(data_dir, "backups"))).exit).toBe(0)
    expect(readdirSync(join(data_dir, "backups")).filter((n) => n.endsWith(".tar"))).toHaveLength(1)
  } finally {
    server.kill("SIGTERM")
    await server.exited
  }
})

test("beside the server of `up`, whose folder nobody named, a check uses the key of that server", async () => {
  await using server = await box({
    BELFRY_SECURITY_MASTER_KEY: Buffer.alloc(32, 5).toString("base64"),
  })
  const line = (...words: string[]) => belfry(words, { env: { HOME: server.home } })
  expect((await line("backup", "create")).exit).toBe(0)
  const { exit, out } = await line("backup", "verify")
  expect([exit, JSON.parse(out)]).toMatchObject([0, { secrets_opened: true }])
})
