import { Database } from "bun:sqlite"
import { afterAll, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { ApiError } from "../../src/core/errors"
import { openWorkers } from "../../src/core/workers"
import { Checkpoints, type CopyLog, openSqlite } from "../../src/store/sqlite"
import { leftover } from "../harness/leftovers"
import { quietLog } from "../harness/quiet"
import { happened, types } from "./facts"

quietLog()

const PAGES = 100
const PAGE_BYTES = 4096 + 24
const BOUND = 8

const workers = openWorkers({ size: 1 })
afterAll(() => workers.close())
const inThread: CopyLog = (path) =>
  workers.run<void>("copy-log", path, { deadline_ms: 60_000, whole: true })

/** A store of its own whose log is copied by `copyLog`, and what can be seen of it from outside. */
function logged(copyLog?: CopyLog, pages = PAGES) {
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-checkpoints-")))
  const path = join(folder, "test.db")
  const told: { asked: number; troubles: unknown[] } = { asked: 0, troubles: [] }
  const counted: CopyLog = (file) => {
    told.asked += 1
    return copyLog ? copyLog(file) : Promise.resolve()
  }
  const options = { path, cache_mb: 4, wal_autocheckpoint: pages }
  const onFault = (error: unknown) => void told.troubles.push(error)
  const store = openSqlite({ ...options, onFault, ...(copyLog && { copyLog: counted }) })
  let number = 0
  let open = true
  return {
    told,
    store,
    path,
    logBytes: () => statSync(`${path}-wal`).size,
    /** So many groups of ten rows, one after another without a pause. */
    async write(groups: number) {
      for (let group = 0; group < groups; group++) {
        const rows = Array.from({ length: 10 }, () => `${number++}`)
        await Promise.all(rows.map((row) => store.tx((tx) => happened(tx, row))))
      }
    },
    /** Groups until the log has that many bytes or more, or has begun anew. */
    async writeUntil(bytes: number) {
      while (this.logBytes() < bytes) await this.write(1)
    },
    written: () => number,
    close() {
      open = false
      return store.close()
    },
    async [Symbol.asyncDispose]() {
      if (open) await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** What a connection to the file sees: pages in the log, and those of them that are copied. */
function stateOf(path: string) {
  using database = new Database(path)
  const row = database.query("PRAGMA wal_checkpoint(NOOP)").get()
  const { log, checkpointed } = row as { log: number; checkpointed: number }
  return { log, checkpointed }
}

const refused = (code: string) => Object.assign(new Error("refused"), { name: "SQLiteError", code })

describe("the write-ahead log", () => {
  test("is left alone while it is short, then copied by the other thread, and begins anew", async () => {
    await using it = logged(inThread)
    await it.write(1)
    while (stateOf(it.path).log < PAGES) {
      expect(it.told.asked).toBe(0)
      await it.write(1)
    }
    while (stateOf(it.path).log >= PAGES) await it.write(1)
    expect(it.told.asked).toBeGreaterThan(0)
    expect(it.told.troubles).toEqual([])
    expect(await types(it.store.read)).toHaveLength(it.written())
  })

  test("stays short under a writer that never pauses for 20,000 transactions", async () => {
    await using it = logged(inThread)
    let most = 0
    for (let round = 0; round < 200; round++) {
      await it.write(10)
      most = Math.max(most, it.logBytes())
    }
    expect(it.told.asked).toBeGreaterThan(10)
    expect(most).toBeLessThan((BOUND + 2) * PAGES * PAGE_BYTES)
    expect(await types(it.store.read)).toHaveLength(20_000)
  })

  test("has an end where the other thread never copies anything", async () => {
    await using it = logged(async () => {})
    let most = 0
    for (let round = 0; round < 300; round++) {
      await it.write(1)
      most = Math.max(most, stateOf(it.path).log)
    }
    expect(most).toBeGreaterThan(BOUND * PAGES)
    expect(most).toBeLessThan((BOUND + 2) * PAGES)
  })

  test("grows while somebody reads an old state, and begins anew after him", async () => {
    await using it = logged(inThread)
    await it.write(1)
    {
      using reader = new Database(it.path)
      reader.run("BEGIN")
      const count = reader.prepare("SELECT count(*) AS n FROM events")
      expect(count.get()).toEqual({ n: 10 })
      await it.writeUntil(2 * BOUND * PAGES * PAGE_BYTES)
      expect(count.get()).toEqual({ n: 10 })
      expect(it.told.asked).toBeLessThan(2 * BOUND) // once a length, not once a group
      expect(stateOf(it.path).checkpointed).toBeLessThan(PAGES)
      count.finalize()
    }
    while (stateOf(it.path).log >= PAGES) await it.write(1)
    expect(await types(it.store.read)).toHaveLength(it.written())
  })

  test("is copied by the writer itself where it fills slowly", () => {
    const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-checkpoints-")))
    const path = join(folder, "calm.db")
    using database = new Database(path)
    database.run("PRAGMA journal_mode = WAL")
    database.run("PRAGMA wal_autocheckpoint = 0")
    database.run("CREATE TABLE bell (id INTEGER PRIMARY KEY)")
    const nobody = async () => expect.unreachable()
    const told = { copyLog: nobody, onFault: nobody }
    const checkpoints = new Checkpoints(database, { path, pages: 20, calm_ms: 0, ...told })
    let most = 0
    for (let number = 0; number < 100; number++) {
      database.run("INSERT INTO bell DEFAULT VALUES")
      checkpoints.look()
      most = Math.max(most, stateOf(path).log)
    }
    expect(most).toBe(20)
  })

  test("is never copied where the setting is 0", async () => {
    await using it = logged(inThread, 0)
    await it.writeUntil(2000 * PAGE_BYTES)
    expect(it.told.asked).toBe(0)
    expect(stateOf(it.path).checkpointed).toBe(0)
  })

  test("is copied within the commit where there is no other thread", async () => {
    await using it = logged()
    await it.write(300)
    expect(it.logBytes()).toBeLessThan(2 * PAGES * PAGE_BYTES)
  })

  test("is empty after the store was closed, also in the midst of a copy", async () => {
    await using it = logged(inThread)
    while (it.told.asked === 0) await it.write(1)
    await it.close()
    expect(it.logBytes()).toBe(0)
  })
})

describe("a copy that fails", () => {
  test("for its sync is told once, and nothing is copied any more", async () => {
    await using it = logged(async () => {
      throw refused("SQLITE_IOERR_FSYNC")
    })
    await it.write(400)
    expect(it.told.troubles).toEqual([expect.objectContaining({ code: "SQLITE_IOERR_FSYNC" })])
    const before = stateOf(it.path)
    expect([it.told.asked, before.checkpointed]).toEqual([1, 0])
    await it.close()
    expect(it.logBytes()).toBeGreaterThan(BOUND * PAGES * PAGE_BYTES)
    using database = new Database(it.path)
    expect(database.query("SELECT count(*) AS n FROM events").get()).toEqual({ n: 4000 })
  })

  test("on a full disk is told each time, a whole length apart", async () => {
    await using it = logged(async () => {
      throw refused("SQLITE_FULL")
    })
    await it.writeUntil((BOUND - 1) * PAGES * PAGE_BYTES)
    expect(it.told.troubles.length).toBeGreaterThan(1)
    expect(it.told.troubles.length).toBeLessThan(BOUND)
    expect(it.told.asked).toBe(it.told.troubles.length)
  })

  test("because no thread is free is no trouble of the disk's", async () => {
    await using it = logged(async () => {
      throw new ApiError("service_unavailable", "The server is shutting down.")
    })
    await it.write(300)
    expect(it.told.troubles).toEqual([])
    expect(stateOf(it.path).log).toBeLessThan((BOUND + 2) * PAGES)
  })
})

test("with 0 the log is never copied, not even once everything of the store is gone", async () => {
  const it = logged(inThread, 0)
  await it.write(20)
  const bytes = it.logBytes()
  await it.close()
  Bun.gc(true)
  await Bun.sleep(0)
  Bun.gc(true)
  expect(it.told.asked).toBe(0)
  expect(it.logBytes()).toBe(bytes)
})

test("what begins while the other thread is waited for at the end is written like the rest", async () => {
  let late: Promise<unknown> = Promise.resolve()
  const begun = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  const it = logged(async () => {
    begun.resolve()
    await go.promise
  })
  while (it.told.asked === 0) await it.write(1)
  await begun.promise
  const closing = it.close()
  late = it.store.tx((tx) => happened(tx, "late"))
  go.resolve()
  await Promise.all([late, closing])
  const kept = new Database(it.path, { readonly: true })
  expect(kept.query("SELECT count(*) AS n FROM events WHERE type = 'late'").get()).toEqual({ n: 1 })
  kept.close()
  expect(it.logBytes()).toBe(0)
})
