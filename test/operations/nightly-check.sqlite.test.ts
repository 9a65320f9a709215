import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { closeSync, openSync, writeSync } from "node:fs"
import { join } from "node:path"
import { openDisk } from "../../src/core/disk"
import { nightlyCheck } from "../../src/operations/nightly-check"
import * as instanceValues from "../../src/store/instance-values"
import { movableClock } from "../harness/clock"
import { quietLog } from "../harness/quiet"
import { type TestStore, testStore } from "../harness/store"

const DAY_SECONDS = 24 * 3600
const BUSY_COMMITS = 500
const PAGE_BYTES = 4096

const clock = movableClock()
const lines = quietLog()

const sounds = () => lines().filter((line) => line.includes("daily check found")).length

/** The first page of a table, once everything is in the file and nothing in the log. */
function rootOf(path: string, table: string): number {
  using database = new Database(path)
  database.run("PRAGMA wal_checkpoint(TRUNCATE)")
  const [row] = database.query("SELECT rootpage FROM sqlite_schema WHERE name = ?").values(table)
  return Number(row?.[0])
}

function overwrite(path: string, page: number) {
  const file = openSync(path, "r+")
  writeSync(file, Buffer.alloc(PAGE_BYTES, 0xa5), 0, PAGE_BYTES, (page - 1) * PAGE_BYTES)
  closeSync(file)
}

async function kept() {
  const base: TestStore = await testStore()
  const disk = openDisk({ dir: base.folder, min_free_mb: 0, ballast_mb: 0 })
  const check = nightlyCheck(base.store, disk)
  return {
    ...base,
    disk,
    check,
    checkedAt: () => instanceValues.find(base.store.read, "database_checked_at"),
    busy() {
      base.store.stats.commits += BUSY_COMMITS
    },
    async [Symbol.asyncDispose]() {
      await check.stop()
      disk.close()
      await base[Symbol.asyncDispose]()
    },
  }
}

test("the first look only notes the time, and a day later the file is checked in full", async () => {
  await using it = await kept()
  const before = sounds()
  await it.check.look()
  const first = await it.checkedAt()
  expect(first).toBeDefined()
  clock.advance({ seconds: DAY_SECONDS - 60 })
  await it.check.look()
  expect(await it.checkedAt()).toBe(first)

  clock.advance({ seconds: 120 })
  await it.check.look()
  expect(sounds()).toBe(before + 1)
  expect(await it.checkedAt()).not.toBe(first)
})

test("a busy minute puts it off, but never for more than another day", async () => {
  await using it = await kept()
  await it.check.look()
  const first = await it.checkedAt()
  clock.advance({ seconds: DAY_SECONDS + 60 })
  it.busy()
  await it.check.look()
  expect(await it.checkedAt()).toBe(first)

  clock.advance({ seconds: DAY_SECONDS })
  it.busy()
  await it.check.look()
  expect(await it.checkedAt()).not.toBe(first)
})

test("damage that the daily check finds makes the disk damaged", async () => {
  await using it = await kept()
  await it.check.look()
  const path = join(it.folder, "test.db")
  overwrite(path, rootOf(path, "messages"))

  clock.advance({ seconds: DAY_SECONDS + 60 })
  await it.check.look()
  expect(it.disk.isDamaged()).toBe(true)
  expect((await it.disk.damaged).message).toContain(`${path} is damaged`)
})

test("a check that a wrong clock noted far ahead does not put off the next one", async () => {
  await using it = await kept()
  clock.advance({ seconds: 400 * DAY_SECONDS })
  await it.check.look()
  const ahead = await it.checkedAt()
  expect(ahead).toBeDefined()
  clock.advance({ seconds: -400 * DAY_SECONDS })
  const before = sounds()
  await it.check.look()
  expect(sounds()).toBe(before + 1)
  expect(String(await it.checkedAt()) < String(ahead)).toBe(true)
})
