import { expect, test } from "bun:test"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { recentLines } from "../../src/core/log"
import type { Workers } from "../../src/core/workers"
import { FileCheck } from "../../src/store/file-check"
import type { FileToCheck } from "../../src/store/file-tasks"
import { openSqlite } from "../../src/store/sqlite"
import { leftover } from "../harness/leftovers"
import { quietLog } from "../harness/quiet"

quietLog()

/** A store of its own, and a thread that answers as `answer` does. */
async function checked(answer: (file: FileToCheck) => Promise<string[]>, limit_ms?: number) {
  const path = join(leftover(mkdtempSync(join(tmpdir(), "belfry-check-"))), "belfry.db")
  const store = openSqlite({ path, cache_mb: 4, wal_autocheckpoint: 1000 })
  const asked: FileToCheck[] = []
  const damage: string[] = []
  let closed = 0
  const workers = (): Workers => ({
    run: async <T>(_: string, file: unknown) => {
      asked.push(file as FileToCheck)
      return (await answer(file as FileToCheck)) as T
    },
    close: async () => void closed++,
  })
  const onDamage = (error: Error) => damage.push(error.message)
  const check = new FileCheck({
    path,
    onDamage,
    workers,
    ...(limit_ms !== undefined && { limit_ms }),
  })
  return {
    path,
    check,
    asked,
    damage,
    closed: () => closed,
    [Symbol.asyncDispose]: () => store.close(),
  }
}

const sound = async () => []

test("a quick check reads the schema and every table, one after the other, and says how far it is", async () => {
  const seen: (string | undefined)[] = []
  await using it = await checked(async () => {
    seen.push(it.check.progress)
    return []
  })
  expect(await it.check.quick()).toBe(true)
  expect(it.asked[0]).toEqual({ path: it.path, how: "quick", table: "sqlite_schema" })
  expect(it.asked.map(({ table }) => table)).toContain("messages")
  expect(seen[0]).toBe(`0 of ${it.asked.length} tables`)
  expect(seen.at(-1)).toBe(`${it.asked.length - 1} of ${it.asked.length} tables`)
  expect(it.check.progress).toBeUndefined()
  expect(it.damage).toEqual([])
  expect(it.closed()).toBe(1) // the thread goes with the check
})

test("the first fault ends it, and is told with the file and the next step", async () => {
  await using it = await checked(async ({ table }) => (table === "events" ? ["Tree 7 page 9"] : []))
  await it.check.quick()
  expect(it.asked.at(-1)?.table).toBe("events")
  expect(it.damage).toHaveLength(1)
  expect(it.damage[0]).toContain(`${it.path} is damaged: Tree 7 page 9.`)
  expect(it.damage[0]).toContain("restore a backup")
})

test("a file that SQLite gives up on is damaged; a thread that dies is not", async () => {
  const malformed = Object.assign(new Error("malformed"), { code: "SQLITE_CORRUPT" })
  {
    await using it = await checked(() => Promise.reject(malformed))
    await it.check.quick()
    expect(it.damage).toHaveLength(1)
  }
  await using it = await checked(() => Promise.reject(new Error("the worker thread died")))
  expect(await it.check.full()).toBe(false)
  expect(it.damage).toEqual([])
  expect(recentLines().at(-1)).toContain("the check of the database failed")
})

test("after the limit no further table is begun, and the log says so", async () => {
  await using it = await checked(sound, 0)
  await it.check.quick()
  expect(it.asked).toEqual([])
  expect(recentLines().at(-1)).toContain("the check of the database is not finished")
})

test("a stop ends it behind the table that is being read", async () => {
  await using it = await checked(async () => {
    void it.check.stop()
    return []
  })
  expect(await it.check.quick()).toBe(false)
  expect(it.asked).toHaveLength(1)
  expect(await it.check.quick()).toBe(false)
  expect(it.asked).toHaveLength(1)
})

test("the full check asks for the whole file", async () => {
  await using it = await checked(sound)
  expect(await it.check.full()).toBe(true)
  expect(it.asked).toEqual([{ path: it.path, how: "full" }])
})
