import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs"
import { join } from "node:path"
import { filesIn } from "../harness/at-rest"
import { quietLog } from "../harness/quiet"
import { freshHome } from "./belfry"
import { belfry } from "./lines"

quietLog()

/** A data folder with a key in it that no output may show. */
async function folder() {
  const data_dir = join(freshHome(), "data")
  const { api_key } = JSON.parse((await belfry(["init", "--data-dir", data_dir, "--json"])).out)
  return {
    data_dir,
    api_key: String(api_key),
    path: join(data_dir, "belfry.db"),
    async check() {
      const { exit, out, err } = await belfry(["db", "check", "--data-dir", data_dir])
      expect(out + err).not.toContain(String(api_key))
      expect(out + err).not.toContain(readFileSync(join(data_dir, "master.key"), "utf8").trim())
      const rows: { check: string; outcome: string; found: number }[] = JSON.parse(out)
      return { exit, bad: rows.filter(({ outcome }) => outcome !== "pass"), rows }
    },
  }
}

const HASH = "ab".repeat(32)

function putBlob(data_dir: string) {
  mkdirSync(join(data_dir, "blobs", "ab"), { recursive: true })
  const path = join(data_dir, "blobs", "ab", HASH)
  writeFileSync(path, "left over")
  utimesSync(path, 1, 1)
}

test("a sound database passes every check, and the files stay as they are", async () => {
  const it = await folder()
  // Whoever opens the database may build the index of its log anew.
  const files = () => filesIn(it.data_dir).filter((path) => !path.endsWith("-shm"))
  const sums = () => new Map(files().map((path) => [path, Bun.hash(readFileSync(path))]))
  const before = sums()
  const { exit, bad, rows } = await it.check()
  expect({ exit, bad }).toEqual({ exit: 0, bad: [] })
  expect(rows.map(({ check }) => check)).toEqual([
    ...["integrity", "references", "owners", "I1", "I4", "I5"],
    ...["blobs_missing", "blobs_unnamed", "inbound_blobs_missing", "inbound_blobs_unnamed"],
  ])
  const now = sums()
  for (const [path, sum] of before) expect([path, now.get(path)]).toEqual([path, sum])
})

test("a file that no row names is a warning, and exit 8", async () => {
  const it = await folder()
  putBlob(it.data_dir)
  const { exit, bad } = await it.check()
  expect(exit).toBe(8)
  expect(bad).toMatchObject([{ check: "blobs_unnamed", outcome: "warn", examples: [HASH] }])
})

test("a counter that lies, a row without its file, and one that refers to none, are exit 1", async () => {
  const it = await folder()
  {
    using database = new Database(it.path)
    database.run("PRAGMA foreign_keys = OFF")
    database.run("UPDATE counters SET value = value + 1 WHERE name = 'audit_log'")
    const id = Buffer.from(Bun.randomUUIDv7("buffer"))
    database.run("INSERT INTO message_files (message_id, sha256) VALUES (?, ?)", [id, HASH])
    database.run("INSERT INTO message_contents (message_id, content) VALUES (?, '{}')", [id])
  }
  const { exit, bad } = await it.check()
  expect(exit).toBe(1)
  expect(bad.map(({ check, found }) => [check, found])).toEqual([
    ["references", 1],
    ["I5", 1],
    ["blobs_missing", 1],
  ])
})

test("a damaged page is exit 74, and nothing else is read", async () => {
  const it = await folder()
  const page = (() => {
    using database = new Database(it.path)
    const root = database
      .query("SELECT rootpage FROM sqlite_schema WHERE name = 'audit_log'")
      .values()
    return Number(root[0]?.[0])
  })()
  const file = openSync(it.path, "r+")
  writeSync(file, Buffer.alloc(4096, 0xa5), 0, 4096, (page - 1) * 4096)
  closeSync(file)
  const { exit, rows } = await it.check()
  expect(exit).toBe(74)
  expect(rows).toMatchObject([{ check: "integrity", outcome: "fail" }])
})

test("a person reads a table with the places", async () => {
  const it = await folder()
  putBlob(it.data_dir)
  const words = ["db", "check", "--data-dir", it.data_dir, "--output", "table"]
  const { exit, out } = await belfry(words)
  expect(exit).toBe(8)
  expect(out).toMatch(/!\s+blobs_unnamed\s+1\s+No row names these files/)
  expect(out).toContain(HASH)
})

test("a folder without a database is told as such, and stays empty", async () => {
  const data_dir = join(freshHome(), "data")
  const { exit, err } = await belfry(["db", "check", "--data-dir", data_dir])
  expect(exit).toBe(74)
  expect(JSON.parse(err).error.message).toContain(`There is no database in ${data_dir}`)
})
