import { expect, test } from "bun:test"
import { jobs } from "../../src/jobs/tables"
import type { WorkResult } from "../../src/jobs/work-item"
import { movableClock } from "../harness/clock"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import * as queue from "./by-hand"
import { fallible } from "./fallible"
import { allJobs, bellOf, emptied, enqueueRings, type RingWork, running, until } from "./rings"

quietLog()

const clock = movableClock()
const LEASE_SECONDS = 30

test("ends that write nothing share transactions, and free their slots before", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 2000)
  const before = it.store.stats.closures
  let ran = 0

  await using _ = await running(
    it.store,
    {
      async run() {
        ran += 1
        return {}
      },
    },
    { concurrency: 2 },
  )
  await emptied(it.store)
  expect(ran).toBe(2000)
  expect(it.store.stats.closures - before).toBeLessThan(400)
})

test("among them those that write or fail have an end of their own", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 90)
  const written: number[] = []

  await using _ = await running(it.store, {
    async run({ bell }): Promise<WorkResult> {
      if (bell % 3 === 0) return {}
      if (bell % 3 === 1) return { retry: "torn", schedule: () => undefined }
      return {
        async done(tx) {
          tx.afterCommit(() => written.push(bell))
        },
      }
    },
  })
  // Other connections may see a commit before its effects have run.
  const left = await until(
    it.store,
    (rows) =>
      rows.length === 30 && rows.every(({ state }) => state === queue.DEAD) && written.length >= 30,
  )
  expect(left.every((job) => bellOf(job) % 3 === 1)).toBe(true)
  expect(written).toHaveLength(30)
})

test("who lost the lease ends nothing, while others in the same transaction do", async () => {
  await using it = await testStore()
  const { store } = it
  const gate = Promise.withResolvers<void>()
  const all = Promise.withResolvers<void>()
  let begun = 0
  await enqueueRings(store, 3)

  const ringing: RingWork = {
    async run() {
      if (++begun === 3) all.resolve()
      await gate.promise
      return {}
    },
  }
  // Without a free slot this loop cannot be the one that claims what is lost.
  const loop = await running(store, ringing, { concurrency: 3 })
  await all.promise
  const [lost] = await allJobs(store)
  clock.advance({ seconds: LEASE_SECONDS + 1 })
  const others = (await allJobs(store)).slice(1).map(({ id }) => id)
  expect(await queue.sweep(store, others)).toBe(1)
  await queue.claim(store, 1, { owner: "another", lease_ms: 1000 })
  gate.resolve()
  await loop.stop(20_000)
  expect(await allJobs(store)).toMatchObject([{ id: lost?.id, owner: "another", attempt: 2 }])
})

test("ends that storage refuses are kept, with their leases, and no job runs twice", async () => {
  await using it = await testStore()
  const faulty = fallible(it.store)
  let ran = 0
  await enqueueRings(it.store, 50)

  const loop = await running(
    faulty.store,
    {
      async run() {
        if (++ran === 1) faulty.fail()
        return {}
      },
    },
    { concurrency: 5 },
  )
  while (faulty.refused() === 0) await Bun.sleep(2)
  const held = (await allJobs(it.store)).filter(({ state }) => state === queue.LEASED)
  expect(held.length).toBeGreaterThan(0)
  faulty.mend()
  await emptied(it.store)
  expect(ran).toBe(50)
  await loop.stop(20_000)
})

test("slots are free before results are on disk, until as many wait as may, and none is lost", async () => {
  await using it = await testStore()
  const full = Object.assign(new Error("full"), { code: "SQLITE_FULL" })
  let [ran, refused, is_full] = [0, 0, true]
  await enqueueRings(it.store, 40)

  const loop = await running<number>(
    it.store,
    {
      async run({ bell }) {
        ran += 1
        return { end: bell, frees_slot: true }
      },
      async onDone() {
        if (is_full) refused += 1
        if (is_full) throw full
      },
    },
    { concurrency: 2, most_unsettled: 5 },
  )
  while (ran < 7 || refused < 20) await Bun.sleep(2)
  expect({ ran, running: loop.running }).toEqual({ ran: 7, running: 0 })
  is_full = false
  await emptied(it.store)
  expect(ran).toBe(40)
  await loop.stop(20_000)
})

test("a stopping loop waits for the ends that are not on disk", async () => {
  await using it = await testStore()
  const begun = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  await enqueueRings(it.store, 3)

  const loop = await running(it.store, {
    async run({ bell }) {
      if (bell === 2) begun.resolve()
      await gate.promise
      return {}
    },
  })
  await begun.promise
  const stopped = loop.stop(20_000)
  gate.resolve()
  await stopped
  expect(await it.store.read.select().from(jobs)).toEqual([])
})

test("a loop that is stopped while storage refuses does not wait for ever", async () => {
  await using it = await testStore()
  const faulty = fallible(it.store)
  await enqueueRings(it.store, 2)

  const loop = await running(faulty.store, {
    async run() {
      faulty.fail()
      return {}
    },
  })
  while (faulty.refused() === 0) await Bun.sleep(2)
  await loop.stop(10)
  const left = await allJobs(it.store)
  expect(left.map(({ state }) => state)).toEqual([queue.LEASED, queue.LEASED])
})

test("a large claim before work that turns slow is given back, but for two a slot", async () => {
  await using it = await testStore()
  const gate = Promise.withResolvers<WorkResult>()
  await enqueueRings(it.store, 1500)

  await using _ = await running(
    it.store,
    { run: async ({ bell }) => (bell < 700 ? {} : gate.promise) },
    { concurrency: 2, lease_ms: 3000 },
  )
  const slow = await until(it.store, (rows) => {
    const leased = rows.filter(({ state }) => state === queue.LEASED).length
    return rows.length === 800 && leased <= 2 + 2 * 2
  })
  expect(slow.every(({ attempt, state }) => attempt === (state === queue.LEASED ? 1 : 0))).toBe(
    true,
  )
  gate.resolve({})
  await emptied(it.store)
})
