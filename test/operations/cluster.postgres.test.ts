import { expect, test } from "bun:test"
import { asc, eq } from "drizzle-orm"
import { events } from "../../src/events/tables"
import { followCluster } from "../../src/operations/instance"
import { instanceValues } from "../../src/store/tables"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { happened, types } from "../store/facts"

quietLog()

test("after a move to another cluster old events come before new ones", async () => {
  await using it = await testStore()
  const { store } = it
  const positions = async () => {
    const rows = await store.read.select().from(events).orderBy(asc(events.id))
    return rows.map(({ position }) => position)
  }
  await followCluster(store)
  await store.tx((tx) => happened(tx, "old"))
  await followCluster(store)
  expect((await positions())[0]).toBeGreaterThan(0)

  // As a dump finds it that was restored here: far ahead of the numbers of this cluster.
  await store.tx(async (tx) => {
    await tx.update(events).set({ position: 2 ** 40 })
    const mine = eq(instanceValues.name, "postgres_cluster")
    await tx.update(instanceValues).set({ value: "7/5" }).where(mine)
  })
  await followCluster(store)
  await store.tx((tx) => happened(tx, "new"))
  await followCluster(store)
  const [old, fresh] = await positions()
  expect(old).toBe(0)
  expect(fresh).toBeGreaterThan(0)
  expect(await types(store.read)).toEqual(["old", "new"])
})
