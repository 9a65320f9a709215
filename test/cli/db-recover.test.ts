import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs"
import { join } from "node:path"
import { lockFolder } from "../../src/store/database-file"
import { program } from "../harness/program"
import { quietLog } from "../harness/quiet"
import { environment, freshHome } from "./belfry"
import { belfry } from "./lines"

quietLog()

const PAGE_BYTES = 4096
const PLANTED = "planted-secret-value"

/** A data folder whose audit log lost its page, with a secret among the rows. */
async function damagedFolder() {
  const data_dir = join(freshHome(), "data")
  const { api_key } = JSON.parse((await belfry(["init", "--data-dir", data_dir])).out)
  const path = join(data_dir, "belfry.db")
  const page = (() => {
    using database = new Database(path)
    database.run("INSERT INTO instance_values (name, value) VALUES ('planted', ?)", [PLANTED])
    database.run("PRAGMA wal_checkpoint(TRUNCATE)")
    const [row] = database
      .query("SELECT rootpage FROM sqlite_schema WHERE name = 'audit_log'")
      .values()
    return Number(row?.[0])
  })()
  const file = openSync(path, "r+")
  writeSync(file, Buffer.alloc(PAGE_BYTES, 0xa5), 0, PAGE_BYTES, (page - 1) * PAGE_BYTES)
  closeSync(file)
  return { data_dir, path, api_key: String(api_key) }
}

test("recover makes a new sound file beside the damaged one, and lists what is lost", async () => {
  const { data_dir, path, api_key } = await damagedFolder()
  const before = readFileSync(path)
  const { exit, out, err } = await belfry(["db", "recover", "--data-dir", data_dir])
  expect(exit).toBe(8)
  const result = JSON.parse(out)
  expect(result).toMatchObject({ from: path, to: `${path}.recovered`, lost: 3 })
  expect(result.tables).toContainEqual({
    table: "audit_log",
    recovered: 0,
    lost: 3,
    unreadable_pages: 1,
  })
  expect(readFileSync(path).equals(before)).toBe(true)
  expect(statSync(result.to).mode & 0o777).toBe(0o600)
  expect(statSync(result.lost_file).mode & 0o777).toBe(0o600)

  const list = readFileSync(result.lost_file, "utf8")
  const lines = list
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
  expect(lines).toHaveLength(4)
  expect(lines.pop()).toEqual({ table: "audit_log", pages: 1, reason: "unreadable_page" })
  for (const line of lines) {
    const id = expect.stringMatching(/^[0-9a-f-]{36}$/)
    expect(line).toEqual({ table: "audit_log", key: { id }, reason: "unreadable" })
  }
  for (const text of [out, err, list]) {
    expect(text).not.toContain(PLANTED)
    expect(text).not.toContain(api_key)
  }

  const words = ["--data-dir", data_dir, "--set", `storage.sqlite.path=${result.to}`]
  const checked = await belfry(["db", "check", ...words])
  expect([checked.exit, checked.out.includes('"fail"')]).toEqual([0, false])
  using database = new Database(result.to)
  const [mark] = database
    .query("SELECT value FROM instance_values WHERE name = 'database_mark'")
    .values()
  expect(String(mark?.[0])).toMatch(/ 0$/) // no folder knows it, so it starts held
})

test("a person reads a table and the next step, and nothing is written over", async () => {
  const { data_dir, path } = await damagedFolder()
  const words = ["db", "recover", path, "--data-dir", data_dir, "--into", join(data_dir, "new.db")]
  const { exit, out } = await belfry([...words, "--output", "table"])
  expect(exit).toBe(8)
  expect(out).toMatch(/audit_log\s+0\s+3\s+1/)
  expect(out).toContain("3 lost, and more may be lost")
  expect(out).toMatch(/1 of \d+ pages cannot be read\n/)
  const again = await belfry(words)
  expect(again.exit).toBe(2)
  expect(JSON.parse(again.err).error.message).toContain("new.db exists already")
})

test("a file that is cut off is told as such, and one that is whole ends with 0", async () => {
  const data_dir = join(freshHome(), "data")
  expect((await belfry(["init", "--data-dir", data_dir])).exit).toBe(0)
  const path = join(data_dir, "belfry.db")
  {
    using database = new Database(path)
    database.run("PRAGMA wal_checkpoint(TRUNCATE)")
  }
  const words = ["db", "recover", path, "--data-dir", data_dir]
  const whole = await belfry([...words, "--into", join(data_dir, "whole.db")])
  const { pages, ...result } = JSON.parse(whole.out)
  expect([whole.exit, result.lost, result.lost_file, result.not_found]).toEqual([0, 0, null, []])
  expect(pages).toMatchObject({ missing: 0, unreadable: 0, of_no_known_table: 0 })

  const left = Math.floor(pages.total / 2)
  truncateSync(path, left * PAGE_BYTES)
  const { exit, out } = await belfry([...words, "--output", "table"])
  expect(exit).toBe(8)
  const missing = pages.total - left
  expect(out).toContain(`the file is cut off: ${missing} of ${pages.total} pages are missing`)
  const list = readFileSync(`${path}.recovered.lost.ndjson`, "utf8").trim().split("\n")
  const counts = list.map((line) => JSON.parse(line) as { pages?: number; reason: string })
  const told = counts.filter(({ reason }) => reason === "missing_page")
  expect(told.reduce((sum, { pages: count = 0 }) => sum + count, 0)).toBe(missing)
})

test("a lost project is told, and its rows belong to a placeholder", async () => {
  const { data_dir, path } = await damagedFolder()
  const [page, id] = (() => {
    using database = new Database(path)
    const pages = "SELECT rootpage FROM sqlite_schema WHERE name = 'projects'"
    const ids = "SELECT lower(hex(id)) FROM projects WHERE hidden = 0"
    return [pages, ids].map((text) => database.query(text).values()[0]?.[0])
  })()
  const file = openSync(path, "r+")
  writeSync(file, Buffer.alloc(PAGE_BYTES), 0, PAGE_BYTES, (Number(page) - 1) * PAGE_BYTES)
  closeSync(file)
  const { exit, out } = await belfry(["db", "recover", "--data-dir", data_dir])
  const { to, lost_file, mended } = JSON.parse(out)
  expect([exit, mended.placeholders]).toEqual([8, 1])
  const lines = readFileSync(lost_file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
  const [told] = lines.filter(({ reason }) => reason === "placeholder")
  expect(told).toMatchObject({ table: "projects", rows: expect.any(Number) })
  expect(told.key.id.replaceAll("-", "")).toBe(String(id))
  const words = ["--data-dir", data_dir, "--set", `storage.sqlite.path=${to}`]
  const checked = await belfry(["db", "check", ...words])
  expect([checked.exit, checked.out.includes('"fail"')]).toEqual([0, false])
})

test("a missing file is told as such, and nothing is made", async () => {
  const data_dir = join(freshHome(), "data")
  const { exit, err } = await belfry(["db", "recover", "--data-dir", data_dir])
  expect(exit).toBe(74)
  expect(JSON.parse(err).error.message).toContain("belfry.db does not exist")
  expect(existsSync(data_dir)).toBe(false)
})

test("what is no file, and a file without a row of ours, are refused, and nothing is made", async () => {
  const home = freshHome()
  const local = ["--data-dir", join(home, "data")]
  const fifo = join(home, "fifo")
  expect(Bun.spawnSync(["mkfifo", fifo]).exitCode).toBe(0)
  const empty = join(home, "empty")
  writeFileSync(empty, "")
  const text = join(home, "text")
  writeFileSync(text, "a letter\n".repeat(10_000))
  const other = join(home, "other.db")
  {
    using database = new Database(other)
    database.run("CREATE TABLE messages (id TEXT, text TEXT)")
    database.run("INSERT INTO messages VALUES ('a', 'b')")
  }
  const none = "has no row of a Belfry database that can be read"
  const cases: [string, number, string][] = [
    [home, 2, "is not a file"],
    [fifo, 2, "is not a file"],
    [empty, 74, none],
    [text, 74, none],
    [other, 74, none],
  ]
  for (const [path, exit, said] of cases) {
    const refused = await belfry(["db", "recover", path, ...local])
    const { message } = JSON.parse(refused.err).error
    expect([path, refused.exit, message]).toEqual([path, exit, expect.stringContaining(said)])
  }
  expect(readdirSync(home).filter((name) => name.includes("recovered"))).toEqual([])
})

test("the new file is whole without its log, also where checkpoints are left to another tool", async () => {
  const { data_dir, path } = await damagedFolder()
  const set = ["--set", "storage.wal_autocheckpoint=0"]
  const { exit } = await belfry(["db", "recover", "--data-dir", data_dir, ...set])
  expect(exit).toBe(8)
  const made = readdirSync(data_dir).filter((name) => name.startsWith("belfry.db.recovered"))
  expect(made.sort()).toEqual(["belfry.db.recovered", "belfry.db.recovered.lost.ndjson"])
  using database = new Database(`${path}.recovered`)
  const mark = "SELECT value FROM instance_values WHERE name = 'database_mark'"
  expect(String(database.query(mark).values()[0]?.[0])).toMatch(/ 0$/)
})

test("what a killed command left is no new file, and does not stop the next one", async () => {
  const { data_dir, path } = await damagedFolder()
  const left = ["", "-wal", ".lost.ndjson", ".draft"].map(
    (end) => `${path}.recovered.unfinished${end}`,
  )
  for (const name of left) writeFileSync(name, "half of it")
  const { exit, out } = await belfry(["db", "recover", "--data-dir", data_dir])
  expect([exit, JSON.parse(out).to]).toEqual([8, `${path}.recovered`])
  expect(left.filter((name) => existsSync(name))).toEqual([])
})

test("a disk that becomes full leaves neither a new file nor a list", async () => {
  const { data_dir, path } = await damagedFolder()
  const before = readdirSync(data_dir)
  const limit = Math.floor(statSync(path).size / 512 / 2)
  const child = Bun.spawn(
    [
      ...["sh", "-c", `ulimit -S -f ${limit}; exec "$@"`, "sh", ...program],
      ...["db", "recover", "--data-dir", data_dir],
    ],
    { env: environment(), stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  )
  const err = await new Response(child.stderr).text()
  expect([await child.exited, err]).toEqual([74, expect.stringContaining('"storage"')])
  expect(readdirSync(data_dir)).toEqual(before)
})

test("a file that a server has is refused, also where it is named by its path", async () => {
  const { data_dir, path } = await damagedFolder()
  const release = lockFolder(path)
  const words = ["db", "recover", path, "--data-dir", join(freshHome(), "other")]
  const refused = await belfry(words)
  release()
  expect([refused.exit, refused.err]).toEqual([74, expect.stringContaining("is in use by")])
  expect((await belfry(words)).exit).toBe(8)
  expect(readdirSync(data_dir)).toContain("belfry.db.recovered")
})

test("a folder that is missing is told before anything is read", async () => {
  const { data_dir, path } = await damagedFolder()
  const into = join(data_dir, "missing/new.db")
  const { exit, err } = await belfry(["db", "recover", path, "--into", into])
  expect([exit, JSON.parse(err).error.message]).toEqual([
    2,
    `${join(data_dir, "missing")} is not a folder`,
  ])
})
