import { expect, test } from "bun:test"
import { jobTable } from "../../src/jobs/jobs"
import { WorkLoop } from "../../src/jobs/loop"
import type { WorkResult } from "../../src/jobs/work-item"
import { movableClock } from "../harness/clock"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { happened, types } from "../store/facts"
import * as queue from "./by-hand"
import { allJobs, bellOf, emptied, enqueueRings, type RingWork, running, until } from "./rings"

quietLog()

const clock = movableClock()
const LEASE_SECONDS = 30

test("who lost the lease while working writes nothing at the end", async () => {
  await using it = await testStore()
  const { store } = it
  const begun = Promise.withResolvers<void>()
  const work = Promise.withResolvers<WorkResult>()
  await enqueueRings(store, 1)

  const working: RingWork = {
    run() {
      begun.resolve()
      return work.promise
    },
  }
  // Without a free slot this loop cannot be the one that claims what is lost.
  const loop = await running(store, working, { concurrency: 1 })
  await begun.promise
  clock.advance({ seconds: LEASE_SECONDS + 1 })
  expect(await queue.sweep(store, [])).toBe(1)
  await queue.claim(store, 1, { owner: "another", lease_ms: 1000 })
  work.resolve({ done: (tx) => happened(tx, "stale") })
  await loop.stop(20_000)
  expect(await types(store.read)).toEqual([])
  expect(await allJobs(store)).toMatchObject([
    { owner: "another", attempt: 2, state: queue.LEASED },
  ])
})

test("a stopping loop waits for what runs and gives back what does not", async () => {
  await using it = await testStore()
  const { store } = it
  const release = Promise.withResolvers<WorkResult>()
  const full = Promise.withResolvers<void>()
  const begun: number[] = []
  await enqueueRings(store, 20)

  const loop = await running(
    store,
    {
      run({ bell }) {
        begun.push(bell)
        if (begun.length === 2) full.resolve()
        return release.promise
      },
    },
    { concurrency: 2 },
  )
  await full.promise
  const stopped = loop.stop(20_000)
  const back = await until(store, (rows) => rows.filter(({ state }) => state === 1).length === 2)
  expect(back.filter(({ state }) => state === 0).map(({ attempt }) => attempt)).toEqual(
    Array.from({ length: 18 }, () => 0),
  )
  release.resolve({ done: (tx) => happened(tx, "rung") })
  await stopped
  expect(await types(store.read)).toEqual(["rung", "rung"])
  expect((await allJobs(store)).map(bellOf)).toEqual(Array.from({ length: 18 }, (_, n) => n + 2))
  expect(begun).toEqual([0, 1])
})

test("a stopping loop does not wait for ever, and gives back what it cuts off", async () => {
  await using it = await testStore()
  const begun = Promise.withResolvers<void>()
  await enqueueRings(it.store, 1)

  const loop = await running(it.store, {
    run() {
      begun.resolve()
      return new Promise<WorkResult>(() => {})
    },
  })
  await begun.promise
  await loop.stop(1)
  expect(await allJobs(it.store)).toMatchObject([{ state: queue.READY, attempt: 0, owner: null }])
})

test("alone on its file, a loop frees at its start what a former life left leased", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 3)
  await queue.claim(it.store, 3, { owner: "former life", lease_ms: 3_600_000 })
  const ran: number[] = []

  const options = { alone: true }
  await using _ = await running(
    it.store,
    {
      async run({ bell }) {
        ran.push(bell)
        return {}
      },
    },
    options,
  )
  await emptied(it.store)
  expect(ran.sort()).toEqual([0, 1, 2])
})

test("among others, a loop touches no lease that still holds", async () => {
  await using it = await testStore()
  const { store } = it
  await enqueueRings(store, 1)
  await queue.claim(store, 1, { owner: "another node", lease_ms: 3_600_000 })
  const ran = Promise.withResolvers<number>()

  await using _ = await running(store, {
    async run({ bell }) {
      ran.resolve(bell)
      return {}
    },
  })
  await enqueueRings(store, 1, {}, 5)
  expect(await ran.promise).toBe(5)
  expect((await allJobs(store))[0]).toMatchObject({ owner: "another node", attempt: 1 })
})

test("a loop is asked twice to stop and stops once", async () => {
  await using it = await testStore()
  const loop = new WorkLoop({
    store: it.store,
    table: jobTable({}),
    concurrency: 1,
    lease_ms: 1000,
    alone: false,
  })
  await loop.start()

  await Promise.all([loop.stop(10), loop.stop(10)])
  expect(loop.running).toBe(0)
})
