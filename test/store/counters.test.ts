import { expect, test } from "bun:test"
import { bump, bumpAll, removeEmpty, total, totals } from "../../src/store/counters"
import { counters } from "../../src/store/tables"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { engine, testStore } from "../harness/store"
import { refusal } from "./facts"

quietLog()

test("a total that was never bumped is 0", async () => {
  await using it = await testStore()

  expect(await total(it.store.read, idFor("p"), "nothing")).toBe(0)
})

test("totals go up and down, by name and by project", async () => {
  await using it = await testStore()
  const { store } = it

  await store.tx(async (tx) => {
    const owner = idFor("p")
    const changes = Object.entries({ email: 5, sms: 2, none: 0 })
    await bumpAll(
      tx,
      changes.map(([name, by]) => ({ owner, name, by })),
    )
  })
  await store.tx((tx) => bump(tx, idFor("p"), "email", -3))
  await store.tx((tx) => bump(tx, idFor("q"), "email", 7))
  const ours = await totals(store.read, idFor("p"), ["email", "sms", "none", "other"])
  expect(Object.fromEntries(ours)).toEqual({ email: 2, sms: 2, none: 0, other: 0 })
  expect(await total(store.read, idFor("q"), "email")).toBe(7)
})

test("hundreds of totals go up and down at once", async () => {
  await using it = await testStore()
  const { store } = it

  const names = Array.from({ length: 300 }, (_, at) => `tag ${at}`)
  const all = (by: number) => names.map((name, at) => ({ owner: idFor("p"), name, by: at * by }))
  await store.tx((tx) => bumpAll(tx, all(3)))
  await store.tx((tx) => bumpAll(tx, all(-1)))
  const sums = await totals(store.read, idFor("p"), names)
  expect([...sums.values()]).toEqual(names.map((_, at) => at * 2))
})

test("a bump that is undone does not count", async () => {
  await using it = await testStore()
  const { store } = it

  const undone = store.tx(async (tx) => {
    await bump(tx, idFor("p"), "email", 5)
    throw new Error("undo")
  })
  await refusal(undone)
  expect(await total(store.read, idFor("p"), "email")).toBe(0)
})

test("a total is the sum of its shards, and writers on Postgres spread over several", async () => {
  await using it = await testStore()
  const { store } = it

  for (let n = 0; n < 60; n++) await store.tx((tx) => bump(tx, idFor("p"), "email", n % 2 ? 2 : -1))
  expect(await total(store.read, idFor("p"), "email")).toBe(30)
  const shards = new Set((await store.read.select().from(counters)).map(({ shard }) => shard))
  if (engine === "postgres") expect(shards.size).toBeGreaterThan(1)
  else expect([...shards]).toEqual([0])
})

test("counters that are 0 are removed by the beginning of their names, and by no other", async () => {
  await using it = await testStore()
  const { store } = it
  const names = ["tag.a", "tag.b", "tag.c", "other"]
  for (const by of [1, 1, 1, -3]) {
    await store.tx((tx) =>
      bumpAll(
        tx,
        names.map((name) => ({ owner: idFor("p"), name, by })),
      ),
    )
  }
  await store.tx((tx) => bump(tx, idFor("p"), "tag.b", 1))
  await store.tx((tx) => bump(tx, idFor("q"), "tag.a", 2))
  expect(await removeEmpty(store, idFor("p"), "tag.")).toBe(2)
  expect(await removeEmpty(store, idFor("p"), "tag.")).toBe(0)
  const rows = await store.read.selectDistinct({ name: counters.name }).from(counters)
  expect(rows.map(({ name }) => name).sort()).toEqual(["other", "tag.a", "tag.b"])
  expect(await total(store.read, idFor("p"), "tag.b")).toBe(1)
  expect(await total(store.read, idFor("q"), "tag.a")).toBe(2)
})

test("no count is lost where counters are removed while others count", async () => {
  await using it = await testStore()
  const { store } = it
  const names = ["tag.a", "tag.b", "tag.c"]
  const bumps = Array.from({ length: 120 }, (_, at) =>
    store.tx((tx) =>
      bumpAll(
        tx,
        names.map((name) => ({ owner: idFor("p"), name, by: at % 4 ? 1 : -3 })),
      ),
    ),
  )
  const removals = Array.from({ length: 30 }, () => removeEmpty(store, idFor("p"), "tag."))
  await Promise.all([...bumps, ...removals])
  const sums = await totals(store.read, idFor("p"), names)
  expect(Object.fromEntries(sums)).toEqual({ "tag.a": 0, "tag.b": 0, "tag.c": 0 })
  await store.tx((tx) => bump(tx, idFor("p"), "tag.a", 5))
  await removeEmpty(store, idFor("p"), "tag.") // the last of the others may have removed both before
  const rows = await store.read.selectDistinct({ name: counters.name }).from(counters)
  expect(rows).toEqual([{ name: "tag.a" }])
  expect(await total(store.read, idFor("p"), "tag.a")).toBe(5)
})
