import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { closeSync, existsSync, openSync, readFileSync, statSync, writeSync } from "node:fs"
import { join } from "node:path"
import { quietLog } from "../harness/quiet"
import { belfry, freshHome } from "./belfry"

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
  expect(lines).toHaveLength(3)
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
  expect(out).toContain("3 lost")
  const again = await belfry(words)
  expect(again.exit).toBe(2)
  expect(JSON.parse(again.err).error.message).toContain("new.db exists already")
})

test("a missing file is told as such, and nothing is made", async () => {
  const data_dir = join(freshHome(), "data")
  const { exit, err } = await belfry(["db", "recover", "--data-dir", data_dir])
  expect(exit).toBe(74)
  expect(JSON.parse(err).error.message).toContain("belfry.db does not exist")
  expect(existsSync(data_dir)).toBe(false)
})
