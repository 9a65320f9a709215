import { expect, test } from "bun:test"
import { cached, perStore, perTable } from "../../src/store/cached"
import { total } from "../../src/store/counters"
import { newRowInserter } from "../../src/store/statements"
import type { Reader, Store } from "../../src/store/store"
import { counters, instanceValues } from "../../src/store/tables"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"

quietLog()

const project_id = idFor("p")

/** A remembered total, and how often it was read. */
function remembered(options: { most?: number; keeps?: (value: number) => boolean } = {}) {
  const totals = cached<number>({ tables: ["counters"], ...options })
  const look = {
    reads: 0,
    of(db: Reader, name = "n", recent_ms = 60_000) {
      const read = () => {
        look.reads += 1
        return total(db, project_id, name)
      }
      return totals(db, name, read, recent_ms)
    },
  }
  return look
}

const set = (store: Store, value: number, name = "n") =>
  store.tx((tx) =>
    tx
      .insert(counters)
      .values({ project_id, name, shard: 0, value })
      .onConflictDoUpdate({
        target: [counters.project_id, counters.name, counters.shard],
        set: { value },
      }),
  )

test("an answer is read once, until a commit changes a table that it was read from", async () => {
  await using it = await testStore()
  const { store } = it
  const look = remembered()

  expect([await look.of(store.read), await look.of(store.read), look.reads]).toEqual([0, 0, 1])
  await set(store, 5)
  expect([await look.of(store.read), await look.of(store.read), look.reads]).toEqual([5, 5, 2])
  await store.tx(
    async (tx) => void (await tx.insert(instanceValues).values({ name: "x", value: "" })),
  )
  expect([await look.of(store.read), look.reads]).toEqual([5, 2])
})

test("what the writers of hot paths change is forgotten, too", async () => {
  await using it = await testStore()
  const { store } = it
  const look = remembered()
  const insert = newRowInserter(counters, "name")
  await look.of(store.read)
  await store.tx((tx) => insert(tx, [{ project_id, name: "n", shard: 0, value: 7 }]))
  expect([await look.of(store.read), look.reads]).toEqual([7, 2])
})

test("a change that is undone makes nothing forgotten, and is seen by nobody", async () => {
  await using it = await testStore()
  const { store } = it
  const look = remembered()
  await look.of(store.read)

  const undone = store.tx(async (tx) => {
    await tx.insert(counters).values({ project_id, name: "n", shard: 0, value: 9 })
    expect(await look.of(tx)).toBe(9)
    throw new Error("undo")
  })
  expect(await undone.catch(String)).toContain("undo")
  expect([await look.of(store.read), look.reads]).toEqual([0, 2])
})

test("what was read before a change is not kept after it", async () => {
  await using it = await testStore()
  const { store } = it
  const totals = cached<number>({ tables: ["counters"] })
  const reading = Promise.withResolvers<number>()

  const old = totals(store.read, "n", () => reading.promise, 60_000)
  await set(store, 5)
  reading.resolve(0)
  expect(await old).toBe(0)
  expect(await totals(store.read, "n", () => total(store.read, project_id, "n"), 60_000)).toBe(5)
})

test("where other nodes write too, an answer is believed for as long as the caller says", async () => {
  await using it = await testStore()
  const look = remembered()

  await look.of(it.store.read, "n", 0)
  await look.of(it.store.read, "n", 0)
  expect(look.reads).toBe(it.store.isAlone ? 1 : 2)
})

test("answers that are not to be kept are read again, and beyond the limit all are", async () => {
  await using it = await testStore()
  const { read } = it.store
  const picky = remembered({ keeps: (value) => value > 0 })
  await picky.of(read)
  await picky.of(read)
  expect(picky.reads).toBe(2)

  const small = remembered({ most: 2 })
  for (const name of ["a", "b", "c", "a"]) await small.of(read, name)
  expect(small.reads).toBe(4)
})

test("two stores remember apart", async () => {
  await using one = await testStore()
  await using other = await testStore()
  const look = remembered()
  await set(one.store, 1)

  expect([await look.of(one.store.read), await look.of(other.store.read)]).toEqual([1, 0])
  await set(other.store, 2)
  expect([await look.of(one.store.read), await look.of(other.store.read)]).toEqual([1, 2])
  expect(look.reads).toBe(3)

  const lists = perStore(() => [] as number[])
  lists(one.store.read).push(1)
  expect([lists(one.store.read), lists(other.store.read)]).toEqual([[1], []])
})

test("what another node was found to have changed is forgotten, too", async () => {
  await using it = await testStore()
  const { store } = it
  const look = remembered()

  await look.of(store.read)
  await store.tx(async (tx) => tx.noteChange("counters"))
  await look.of(store.read)
  expect(look.reads).toBe(2)
})

test("each table of a store has one of what is kept for it, for the reader and every transaction", async () => {
  await using one = await testStore()
  await using other = await testStore()
  const keptFor = perTable((_, table) => ({ table }))
  const first = keptFor(one.store.read, "messages")
  expect(first).toEqual({ table: "messages" })
  expect(await one.store.tx(async (tx) => keptFor(tx, "messages"))).toBe(first)
  expect(keptFor(one.store.read, "jobs")).toEqual({ table: "jobs" })
  expect(keptFor(other.store.read, "messages")).not.toBe(first)
})
