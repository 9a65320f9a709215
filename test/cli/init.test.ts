import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { existsSync, mkdirSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import {
  removeJournal,
  type UpgradeJournal,
  writeJournal,
} from "../../src/operations/upgrade/journal"
import { migrateSqlite } from "../../src/store/migrate"
import { embedded } from "../../src/store/migrations"
import { quietLog } from "../harness/quiet"
import { belfry, freshHome, onTerminal } from "./belfry"

quietLog()

test("init makes a key once, and later says that all is there", async () => {
  const data_dir = join(freshHome(), "data")
  const init = () => belfry(["init", "--data-dir", data_dir, "--json"])
  const first = JSON.parse((await init()).out)
  expect(first).toMatchObject({ created: true, data_dir })
  expect(first.api_key).toMatch(/^svc_live_[0-9A-Za-z]{57}$/)
  expect(statSync(join(data_dir, "master.key")).mode & 0o777).toBe(0o600)

  const again = await init()
  expect(again.exit).toBe(0)
  expect(JSON.parse(again.out)).toEqual({ ...first, api_key: null, created: false })
})

/** A folder begun by a version that knew all migrations but the last. */
function olderFolder() {
  const data_dir = join(freshHome(), "data")
  mkdirSync(data_dir)
  using database = new Database(join(data_dir, "belfry.db"))
  migrateSqlite(database, embedded.sqlite.slice(0, -1))
  return { data_dir, last: embedded.sqlite.at(-1)?.tag ?? "" }
}

test("migrate says what it applied, and the second time nothing", async () => {
  const { data_dir, last } = olderFolder()
  const migrate = async () => JSON.parse((await belfry(["migrate", "--data-dir", data_dir])).out)
  expect(await migrate()).toEqual({ engine: "sqlite", applied: [last] })
  expect(await migrate()).toEqual({ engine: "sqlite", applied: [] })
})

test("migrate --dry-run lists what is missing, and changes nothing", async () => {
  const { data_dir, last } = olderFolder()
  const dryRun = () => belfry(["migrate", "--data-dir", data_dir, "--dry-run"])
  expect(JSON.parse((await dryRun()).out)).toEqual({ engine: "sqlite", pending: [last] })
  expect(JSON.parse((await dryRun()).out)).toEqual({ engine: "sqlite", pending: [last] })
})

test.each([
  "migrate",
  "migrate --dry-run",
  "admin accounts",
  "admin lock acme",
  "mailbox list --system",
])("%s in a folder without a database says so, and makes nothing", async (line) => {
  const data_dir = join(freshHome(), "data")
  const { exit, err, out } = await belfry([...line.split(" "), "--data-dir", data_dir])
  expect([exit, out]).toEqual([74, ""])
  expect(JSON.parse(err).error.message).toContain(`There is no database in ${data_dir}`)
  expect(existsSync(data_dir)).toBe(false)
})

test.each(["config show", "config get data_dir", "config path", "status", "profiles list"])(
  "%s makes no data folder",
  async (line) => {
    const home = freshHome()
    await belfry(line.split(" "), { env: { HOME: home, BELFRY_URL: "http://127.0.0.1:9" } })
    expect(existsSync(join(home, ".local"))).toBe(false)
  },
)

test("a command that needs the master key does not make another one", async () => {
  const data_dir = join(freshHome(), "data")
  expect((await belfry(["init", "--data-dir", data_dir])).exit).toBe(0)
  rmSync(join(data_dir, "master.key"))
  const { exit, err } = await belfry(["admin", "accounts", "--data-dir", data_dir])
  expect(exit).toBe(74)
  expect(JSON.parse(err).error.message).toContain(`${join(data_dir, "master.key")} does not exist`)
  expect(existsSync(join(data_dir, "master.key"))).toBe(false)
})

test("init --quiet prints the key, which is shown this once, and later nothing", async () => {
  const words = ["init", "--quiet", "--data-dir", join(freshHome(), "data")]
  expect((await belfry(words)).out).toMatch(/^svc_live_[0-9A-Za-z]{57}\n$/)
  expect((await belfry(words)).out).toBe("")
})

test("the next step of init serves the same data", async () => {
  const home = freshHome()
  const config = join(home, "belfry.toml")
  await Bun.write(config, "")
  const words = ["init", "--config", config, "--data-dir", `${home}/a b`, "--set", "log.level=warn"]
  const { out } = await onTerminal([...words, "--no-color"])
  const next = `→ belfry serve --data-dir '${home}/a b' --set log.level=warn --config ${config}`
  expect(out.replaceAll("\r\n", "")).toContain(next)
})

test("a folder that cannot be written is 74", async () => {
  const { exit, err } = await belfry(["init", "--data-dir", "/dev/null/data"])
  expect([exit, JSON.parse(err).error.code]).toEqual([74, "storage"])
})

test("all faults of the settings are told at once, the nearest name with each", async () => {
  const env = { BELFRY_LOG_LEVL: "info", BELFRY_HTTP_LISTEN: "nowhere" }
  const { exit, err } = await belfry(["init"], { env })
  expect(exit).toBe(2)
  const { faults } = JSON.parse(err).error.details
  expect(faults).toHaveLength(2)
  expect(faults.join("\n")).toContain("did you mean BELFRY_LOG_LEVEL?")
})

test("--config names a file of settings, and a missing one is told", async () => {
  const home = freshHome()
  mkdirSync(join(home, "etc"))
  const file = join(home, "etc", "belfry.toml")
  await Bun.write(file, '[log]\nlevel = "debug"\n')
  const get = (path: string) => belfry(["config", "get", "log.level", "--config", path])
  expect((await get(file)).out).toBe("debug\n")
  expect((await get(`${file}.not`)).exit).toBe(66)
})

test("a Postgres that does not answer is 69, named without its password", async () => {
  const env = { DATABASE_URL: "postgres://ann:hunter2@127.0.0.1:9/mail" }
  const { exit, err } = await belfry(["admin", "accounts"], { env })
  const { error } = JSON.parse(err)
  expect([exit, error.code]).toEqual([69, "unreachable"])
  expect(error.message).toContain("127.0.0.1:9/mail did not answer")
  expect(err).not.toContain("hunter2")
})

test("a command that opens the data by itself waits for the end of an upgrade", async () => {
  const data_dir = join(freshHome(), "data")
  const begun = await belfry(["init", "--data-dir", data_dir, "--json"])
  expect(begun.exit).toBe(0)
  const journal: UpgradeJournal = {
    ...{ format: 1, id: "1", step: "returning", from_version: "0.1.0", to_version: "0.2.0" },
    ...{ program: "/none", staged: "/none.new", kept: "/none.kept", keeps_database: true },
    ...{ server: null, is_supervised: false },
  }
  writeJournal(data_dir, journal)
  for (const line of ["init", "admin accounts", "admin rotate-master-key", "admin lost-key"]) {
    const { exit, err } = await belfry([...line.split(" "), "--data-dir", data_dir])
    expect([line, exit, JSON.parse(err).error.code]).toEqual([line, 75, "upgrading"])
  }
  // The command of an earlier version migrates like this.
  expect((await belfry(["migrate", "--data-dir", data_dir])).exit).toBe(0)
  removeJournal(data_dir)
  expect((await belfry(["admin", "accounts", "--data-dir", data_dir])).exit).toBe(0)
})
