import { expect, spyOn, test } from "bun:test"
import { DeferredError, type WorkResult } from "../../src/jobs/work-item"
import { movableClock } from "../harness/clock"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { happened, types } from "../store/facts"
import * as queue from "./by-hand"
import { allJobs, emptied, enqueueRings, running, until } from "./rings"

quietLog()

const clock = movableClock()

const FAILED = "The job failed. The log has the reason."

test("runs every job once and forgets it", async () => {
  await using it = await testStore()
  const ran: number[] = []
  const done = Promise.withResolvers<void>()
  await enqueueRings(it.store, 50)

  await using _ = await running(it.store, {
    async run({ bell }) {
      ran.push(bell)
      if (ran.length === 50) done.resolve()
      return {}
    },
  })
  await done.promise
  expect(ran.sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, n) => n))
  await emptied(it.store)
})

test("what a job writes at its end is committed with its end", async () => {
  await using it = await testStore()
  const told = Promise.withResolvers<[string[], number]>()
  await enqueueRings(it.store, 1)

  await using _ = await running(it.store, {
    run: async () => ({
      async done(tx) {
        await happened(tx, "rung")
        tx.afterCommit(async () => {
          told.resolve([await types(it.store.read), (await allJobs(it.store)).length])
        })
      },
    }),
  })
  expect(await told.promise).toEqual([["rung"], 0])
})

test("a job that hangs stops none of a hundred others", async () => {
  await using it = await testStore()
  const hanging = Promise.withResolvers<WorkResult>()
  const others = Promise.withResolvers<void>()
  let ran = 0
  await enqueueRings(it.store, 101)

  await using loop = await running(
    it.store,
    {
      async run({ bell }) {
        if (bell === 0) return hanging.promise
        if (++ran === 100) others.resolve()
        return {}
      },
    },
    { concurrency: 2 },
  )
  await others.promise
  expect(ran).toBe(100)
  expect(loop.running).toBeGreaterThanOrEqual(1)
  hanging.resolve({})
  await emptied(it.store)
})

test("holds no more than it works on, and two claims' worth for each slot", async () => {
  await using it = await testStore()
  const release = Promise.withResolvers<WorkResult>()
  const full = Promise.withResolvers<void>()
  let begun = 0
  await enqueueRings(it.store, 300)

  await using loop = await running(
    it.store,
    {
      run() {
        if (++begun === 5) full.resolve()
        return release.promise
      },
    },
    { concurrency: 5 },
  )
  await full.promise
  loop.wake() // however often it looks, there is no room
  await Bun.sleep(20)
  loop.wake()
  expect([begun, loop.running]).toEqual([5, 5])
  const leased = (await allJobs(it.store)).filter(({ state }) => state === queue.LEASED).length
  expect(leased - loop.running).toBeLessThanOrEqual(2 * 5)
  release.resolve({})
  await emptied(it.store)
  expect(begun).toBe(300)
})

test("a commit wakes the loop: with polls that never come, every job runs all the same", async () => {
  await using it = await testStore()
  const real = globalThis.setTimeout
  const never = (work: () => void, ms?: number) => real(ms === 1000 ? () => {} : work, ms)
  const timers = spyOn(globalThis, "setTimeout").mockImplementation(never as typeof setTimeout)
  let ran = Promise.withResolvers<void>()

  await using _ = await running(it.store, {
    async run() {
      ran.resolve()
      return {}
    },
  })
  for (let round = 0; round < 20; round++) {
    ran = Promise.withResolvers<void>()
    await enqueueRings(it.store, 1)
    await ran.promise
  }
  await emptied(it.store)
  timers.mockRestore()
})

test("a job that is due later runs when its time has come, not before", async () => {
  await using it = await testStore()
  const ran: number[] = []
  const late = Promise.withResolvers<void>()
  await enqueueRings(it.store, 1, { run_at: new Date(Date.now() + 3_600_000).toISOString() })

  await using loop = await running(it.store, {
    async run({ bell }) {
      ran.push(bell)
      if (ran.length === 2) late.resolve()
      return {}
    },
  })
  await enqueueRings(it.store, 1, {}, 9)
  while (ran.length === 0) await Bun.sleep(1)
  expect(ran).toEqual([9])
  clock.advance({ seconds: 3601 })
  loop.wake()
  await late.promise
  expect(ran).toEqual([9, 0])
})

test.each<[string, () => Promise<WorkResult>, string]>([
  ["asks for another try", async () => ({ retry: "the rope is torn" }), "the rope is torn"],
  ["throws", () => Promise.reject(new Error("no such bell")), FAILED],
])("a handler that %s is tried along the schedule, then buried", async (_, run, reason) => {
  await using it = await testStore()
  const { store } = it
  const attempts: number[] = []
  const deaths: string[] = []
  await enqueueRings(store, 1)

  await using loop = await running(store, {
    run: (_payload, { attempt }) => {
      attempts.push(attempt)
      return run()
    },
    async onDead(tx, { bell }, why) {
      deaths.push(`bell ${bell}: ${why}`)
      await happened(tx, "bell.broken")
    },
  })
  for (const attempt of [1, 2]) {
    const waiting = await until(store, ([job]) => job?.attempt === attempt && job.state === 0)
    expect(waiting[0]).toMatchObject({ last_error: reason, owner: null })
    expect(await types(store.read)).toEqual([])
    clock.advance({ seconds: 3601 })
    loop.wake()
  }
  const [dead] = await until(store, ([job]) => job?.state === queue.DEAD)
  expect(dead).toMatchObject({ last_error: reason, attempt: 3, owner: null, lease_until: null })
  expect([attempts, deaths]).toEqual([[1, 2, 3], [`bell 0: ${reason}`]])
  expect(await types(store.read)).toEqual(["bell.broken"])
})

test("the result may bring a schedule of its own", async () => {
  await using it = await testStore()
  const { store } = it
  await enqueueRings(store, 1)

  await using loop = await running(store, {
    run: async () => ({
      retry: "deferred",
      schedule: (attempt) => (attempt === 1 ? 60 : undefined),
    }),
    onDead: (tx) => happened(tx, "dead"),
  })
  const [job] = await until(store, ([one]) => one?.last_error === "deferred")
  expect(await types(store.read)).toEqual([])
  expect(Date.parse(job?.run_at ?? "")).toBeGreaterThan(Date.now() + 30_000)
  clock.advance({ seconds: 61 })
  loop.wake()
  await until(store, ([one]) => one?.state === queue.DEAD)
  expect(await types(store.read)).toEqual(["dead"])
})

test("work that cannot be tried now waits, which is no attempt", async () => {
  await using it = await testStore()
  const { store } = it
  await enqueueRings(store, 2)
  await using _ = await running(store, {
    async run({ bell }) {
      throw bell === 0 ? new DeferredError("crowded", 60) : new DeferredError("paused", null, "it")
    },
  })
  const rows = await until(store, (all) => all.every(({ last_error }) => last_error !== null))
  expect(rows).toMatchObject([
    { state: queue.READY, attempt: 0, owner: null, last_error: "crowded" },
    { state: queue.HELD, attempt: 0, owner: "it", last_error: "paused" },
  ])
  expect(Date.parse(rows[0]?.run_at ?? "")).toBeGreaterThan(Date.now() + 30_000)
})

test("a job of a kind that nobody knows is buried, and says so", async () => {
  await using it = await testStore()
  await it.store.tx((tx) =>
    queue.enqueue(
      tx,
      { name: "gong.strike", schedule: () => 1 },
      { payload: {}, project_id: idFor("p") },
    ),
  )

  await using _ = await running(it.store, { run: async () => ({}) })
  const [job] = await until(it.store, ([one]) => one?.state === queue.DEAD)
  expect(job?.last_error).toBe(FAILED)
})
