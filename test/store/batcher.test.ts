import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { Batcher } from "../../src/store/batcher"
import type { Store, Tx } from "../../src/store/store"
import { counters } from "../../src/store/tables"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"

quietLog()

const project_id = newId()

/** Stores each number as a row, and answers with its double. A row that exists spoils the batch. */
function doubling(store: Store, most = 100) {
  const sizes: number[] = []
  const write = async (tx: Tx, batch: number[]) => {
    sizes.push(batch.length)
    const rows = batch.map((shard) => ({ project_id, name: "n", shard, value: 0 }))
    await tx.insert(counters).values(rows)
    return batch.map((number) => number * 2)
  }
  return { batcher: new Batcher({ store, write, most }), sizes }
}

const stored = async (store: Store) => {
  const rows = await store.read.select().from(counters).where(eq(counters.project_id, project_id))
  return rows.map(({ shard }) => shard).sort((a, b) => a - b)
}

const numbers = (count: number) => Array.from({ length: count }, (_, number) => number)

test("what comes together shares transactions, and each hears its own result", async () => {
  await using it = await testStore()
  const { batcher, sizes } = doubling(it.store)

  const results = await Promise.all(numbers(250).map((number) => batcher.add(number)))
  expect(results).toEqual(numbers(250).map((number) => number * 2))
  expect(await stored(it.store)).toEqual(numbers(250))
  expect(sizes.length).toBeLessThan(10)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(100)
  expect(batcher.waiting).toBe(0)
})

test("what comes during a transaction is written by the next one", async () => {
  await using it = await testStore()
  const { batcher } = doubling(it.store)

  for (const number of numbers(5)) expect(await batcher.add(number)).toBe(number * 2)
  expect(await stored(it.store)).toEqual(numbers(5))
})

test("an entry that spoils its batch fails alone", async () => {
  await using it = await testStore()
  const { batcher } = doubling(it.store)

  await batcher.add(7)
  const outcomes = await Promise.allSettled(numbers(10).map((number) => batcher.add(number)))
  const failed = outcomes.flatMap(({ status }, number) => (status === "rejected" ? number : []))
  expect(failed).toEqual([7])
  expect(await stored(it.store)).toEqual(numbers(10))
})

test("a fault of the storage fails the whole batch after one try, and the next one is tried", async () => {
  await using it = await testStore()
  let tries = 0
  const refusing: Store = {
    ...it.store,
    tx(closure) {
      tries += 1
      if (tries > 1) return it.store.tx(closure)
      return Promise.reject(Object.assign(new Error("disk full"), { code: "SQLITE_FULL" }))
    },
  }
  const { batcher } = doubling(refusing)

  const outcomes = await Promise.allSettled(numbers(10).map((number) => batcher.add(number)))
  expect(outcomes.every(({ status }) => status === "rejected")).toBe(true)
  expect(tries).toBe(1)
  expect(await batcher.add(1)).toBe(2)
})
