import { expect, test } from "bun:test"
import { sql } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { jobRows } from "../../src/jobs/jobs"
import { nodes } from "../../src/jobs/tables"
import { LEASED, READY } from "../../src/jobs/work-item"
import { releaseSilent, showLife, workNode } from "../../src/jobs/work-nodes"
import type { Store } from "../../src/store/store"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { claim, completeAll } from "./by-hand"
import { allJobs, enqueueRings } from "./rings"

quietLog()

const LEASE_MS = 3_600_000

/** As if the node had shown its last life so long ago. */
const silentFor = (store: Store, node: string, seconds: number) =>
  store.tx((tx) =>
    tx
      .update(nodes)
      .set({ seen_at: sql`${nodes.seen_at} - ${seconds * 1000}` })
      .where(sql`${nodes.id} = ${sql.param(node, nodes.id)}`),
  )

test("what a silent node had claimed is released to the others; what a living one has stays its own", async () => {
  await using it = await testStore()
  const { store } = it
  await enqueueRings(store, 700)
  const [dead, alive] = [newId(), newId()]
  await showLife(store, dead)
  await showLife(store, alive)
  const lost = await claim(store, 600, { owner: dead, lease_ms: LEASE_MS })
  await claim(store, 100, { owner: alive, lease_ms: LEASE_MS })

  await silentFor(store, dead, 15)
  expect(await releaseSilent(store, [jobRows])).toBe(0)
  await silentFor(store, dead, 6)
  expect(await releaseSilent(store, [jobRows])).toBe(600)
  const rows = await allJobs(store)
  expect(rows.filter(({ state }) => state === READY)).toHaveLength(600)
  expect(rows.filter(({ state, owner }) => state === LEASED && owner === alive)).toHaveLength(100)
  expect(await store.read.select({ id: nodes.id }).from(nodes)).toEqual([{ id: alive }])

  // The node was not dead but asleep: its claims are lost, and write nothing.
  expect((await store.tx((tx) => completeAll(tx, lost))).size).toBe(0)
  const again = await claim(store, 600, { owner: alive, lease_ms: LEASE_MS })
  expect(again.every(({ attempt }) => attempt === 2)).toBe(true)
})

test("a node that was forgotten shows life again, and one that leaves is gone at once", async () => {
  await using it = await testStore()
  const { store } = it
  const own = workNode({ store, alone: false, data_dir: it.folder, isAsked: () => false })
  await own.join()
  const node = own.loop.owner
  await silentFor(store, node, 60)
  await releaseSilent(store, [jobRows])
  expect(await store.read.select().from(nodes)).toEqual([])
  await own.beat([jobRows])
  expect(await store.read.select({ id: nodes.id }).from(nodes)).toEqual([{ id: node }])
  await own.leave()
  expect(await store.read.select().from(nodes)).toEqual([])
})
