import { expect, test } from "bun:test"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { byteSize } from "../../cli/lib/cells"
import { quietLog } from "../harness/quiet"
import { freshHome } from "./belfry"
import { belfry } from "./lines"

quietLog()

test("db stats shows tables, projects and what retention frees, and no key", async () => {
  const data_dir = join(freshHome(), "data")
  const { api_key } = JSON.parse((await belfry(["init", "--data-dir", data_dir, "--json"])).out)
  const { exit, out, err } = await belfry(["db", "stats", "--data-dir", data_dir, "--json"])
  expect({ exit, err }).toEqual({ exit: 0, err: "" })
  expect(out).not.toContain(String(api_key))
  const stats = JSON.parse(out)
  expect(stats).toMatchObject({ engine: "sqlite", days_left: null })
  expect(stats.bytes).toBeGreaterThan(0)
  expect(stats.disk_free_bytes).toBeGreaterThan(0)
  expect(stats.frees.map(({ within_days }: { within_days: number }) => within_days)).toEqual([
    1, 7, 30,
  ])
  const tables = new Map(stats.tables.map((one: { table: string }) => [one.table, one]))
  expect(tables.get("api_keys")).toMatchObject({ rows: 1, kept: "a year after their end" })
  expect(tables.get("audit_log")).toMatchObject({
    kept: "for ever (retention.audit_log is not set)",
  })
  expect(stats.projects.map(({ name }: { name: string }) => name)).toContain("Default")

  const words = ["db", "stats", "--data-dir", data_dir, "--output", "table"]
  const human = (await belfry(words)).out
  expect(human).toMatch(/growth +\S+ K?B a day/)
  expect(human).toMatch(/TABLE +SIZE +ROWS +KEPT FOR/)
})

test("db stats of an empty folder names what is missing, and begins nothing", async () => {
  const data_dir = join(freshHome(), "data")
  const { exit, err } = await belfry(["db", "stats", "--data-dir", data_dir])
  expect(exit).not.toBe(0)
  expect(err).toContain(data_dir)
})

test("db stats of a file that is no database names the file, and what to do", async () => {
  const data_dir = join(freshHome(), "data")
  mkdirSync(data_dir)
  const path = join(data_dir, "belfry.db")
  writeFileSync(path, "x".repeat(8192))
  const { exit, err } = await belfry(["db", "stats", "--data-dir", data_dir])
  expect(exit).toBe(74)
  expect(JSON.parse(err).error.message).toContain(path)
})

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1536, "1.5 KB"],
  [200 * 1024 * 1024, "200 MB"],
  [1024 ** 5, "1024 TB"],
])("%d bytes are %s", (bytes, text) => {
  expect(byteSize(bytes)).toBe(text)
})
