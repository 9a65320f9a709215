import { expect, test } from "bun:test"
import { mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openWorkers } from "../../src/core/workers"
import { checkpointFile } from "../../src/store/checkpoint-task"
import { bump, total } from "../../src/store/counters"
import { enqueue } from "../../src/store/queue"
import { openSqlite } from "../../src/store/sqlite"
import type { Store } from "../../src/store/store"

const PAGE_BYTES = 4096
const PAGES = 20

const WRITES = 400
const PAYLOAD_BYTES = 6000

/** Each write takes several pages: a WAL that never began anew would be many times larger. */
const MOST_WAL_BYTES = (WRITES * PAYLOAD_BYTES) / 2

const job = { name: "test", schedule: () => undefined }

function scratch() {
  const folder = mkdtempSync(join(tmpdir(), "belfry-checkpoints-"))
  const path = join(folder, "test.db")
  return {
    path,
    options: { path, cache_mb: 4, wal_autocheckpoint: PAGES },
    /** The file keeps the size that it once needed. */
    walBytes: () => statSync(`${path}-wal`).size,
    /** Of the database file alone. */
    fileBytes: () => statSync(path).size,
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  }
}

async function write(store: Store, times: number) {
  const payload = "x".repeat(PAYLOAD_BYTES)
  for (let count = 0; count < times; count++) {
    await store.tx(async (tx) => {
      await enqueue(tx, job, { payload, project_id: null })
      await bump(tx, "project", "written", 1)
    })
  }
}

test("a thread does the checkpoints, and the WAL begins anew all the same", async () => {
  using it = scratch()
  const workers = openWorkers({ size: 1 })
  let done = 0
  const checkpoint = async (path: string) => {
    await workers.run("checkpoint", path, { deadline_ms: 10_000 })
    done += 1
  }
  const store = openSqlite({ ...it.options, checkpoint })
  await write(store, WRITES)

  expect(done).toBeGreaterThan(0)
  expect(it.walBytes()).toBeLessThan(MOST_WAL_BYTES)
  await store.close()
  await workers.close()
  const again = openSqlite(it.options)
  expect(await total(again.read, "project", "written")).toBe(WRITES)
  await again.close()
})

test("what the thread has copied is in the file before the writer does anything", async () => {
  using it = scratch()
  const before = Promise.withResolvers<number>()
  const after = Promise.withResolvers<number>()
  const checkpoint = async (path: string) => {
    before.resolve(it.fileBytes())
    checkpointFile(path)
    after.resolve(it.fileBytes())
  }
  const store = openSqlite({ ...it.options, checkpoint })
  await write(store, PAGES)
  expect(await after.promise).toBeGreaterThan(await before.promise)
  await store.close()
})

test("one checkpoint runs at a time, and one that never ends leaves the WAL bounded", async () => {
  using it = scratch()
  const end = Promise.withResolvers<void>()
  let begun = 0
  const checkpoint = () => {
    begun += 1
    return end.promise
  }
  const store = openSqlite({ ...it.options, checkpoint })
  await write(store, WRITES)
  expect(begun).toBe(1)
  expect(it.walBytes()).toBeLessThan(MOST_WAL_BYTES)

  let closed = false
  const closing = store.close().then(() => {
    closed = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(closed).toBe(false) // it waits for the checkpoint
  end.resolve()
  await closing
})

test("a checkpoint that fails is told, and the next commit tries again", async () => {
  using it = scratch()
  const full = Object.assign(new Error("disk full"), { code: "SQLITE_FULL" })
  const troubles: unknown[] = []
  const store = openSqlite({
    ...it.options,
    checkpoint: () => Promise.reject(full),
    onTrouble: (error) => troubles.push(error),
  })
  await write(store, 100)
  expect(troubles.length).toBeGreaterThan(1)
  expect(troubles.every((one) => one === full)).toBe(true)
  expect(await total(store.read, "project", "written")).toBe(100)
  await store.close()
})

test("where checkpoints are switched off, no thread does them either", async () => {
  using it = scratch()
  let begun = 0
  const checkpoint = async () => {
    begun += 1
  }
  const store = openSqlite({ ...it.options, wal_autocheckpoint: 0, checkpoint })
  await write(store, 100)
  expect(begun).toBe(0)
  expect(it.walBytes()).toBeGreaterThan(100 * PAGE_BYTES)
  await store.close()
})
