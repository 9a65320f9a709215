import { expect, test } from "bun:test"
import { statSync } from "node:fs"
import { join } from "node:path"
import { inArray } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { filePages, giveBack } from "../../src/operations/give-back"
import { requestLog } from "../../src/request-log/tables"
import type { Store } from "../../src/store/store"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { sampleRow } from "../harness/table-rows"

quietLog()

const ROWS = 20_000

/** Many rows of a kilobyte, most of which are deleted again. Resolves with the ids of those that stay. */
async function churn(store: Store): Promise<string[]> {
  const ids = Array.from({ length: ROWS }, newId)
  for (let at = 0; at < ROWS; at += 1000) {
    await store.tx(async (tx) => {
      for (const id of ids.slice(at, at + 1000)) {
        const row = sampleRow(requestLog, { id, path: "x".repeat(1000), created_at: now() })
        await tx.insert(requestLog).values(row as never)
      }
    })
  }
  const gone = ids.slice(0, ROWS * 0.9)
  for (let at = 0; at < gone.length; at += 500) {
    const some = gone.slice(at, at + 500)
    await store.tx((tx) => tx.delete(requestLog).where(inArray(requestLog.id, some)))
  }
  return ids.slice(gone.length)
}

test("the file becomes shorter in small steps, keeps some free pages, and no row is lost", async () => {
  await using base = await testStore("sqlite")
  const { store } = base
  const path = join(base.folder, "test.db")
  const kept = await churn(store)
  await store.emptyLog()
  const long = statSync(path).size
  const { free = 0, all = 0 } = filePages(store) ?? {}
  expect(free).toBeGreaterThan(all / 2)

  const commits = store.stats.commits
  const given = await giveBack(store)
  expect(given / (store.stats.commits - commits)).toBeLessThanOrEqual(64 * 4096)
  await store.emptyLog()
  expect(statSync(path).size).toBe(long - given)
  expect(filePages(store)?.free).toBe(2048)

  await giveBack(store, { everything: true })
  expect(filePages(store)?.free).toBe(0)
  const rows = await store.read.select({ id: requestLog.id }).from(requestLog)
  expect(rows.map(({ id }) => id).sort()).toEqual(kept)
})

test("others write between two steps, and a signal ends it", async () => {
  await using base = await testStore("sqlite")
  const { store } = base
  await churn(store)
  const end = new AbortController()
  const giving = giveBack(store, { everything: true, signal: end.signal })
  let written = 0
  for (; written < 5; written++) {
    const row = sampleRow(requestLog, { id: newId(), created_at: now() })
    await store.tx((tx) => tx.insert(requestLog).values(row as never))
  }
  end.abort()
  expect(await giving).toBeGreaterThan(0)
  expect(filePages(store)?.free).toBeGreaterThan(0)
  expect(written).toBe(5)
})
