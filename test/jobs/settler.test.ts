import { afterAll, expect, spyOn, test } from "bun:test"
import { Settler } from "../../src/jobs/settler"
import type { Store } from "../../src/store/store"
import { movableClock } from "../harness/clock"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { happened, types } from "../store/facts"
import * as queue from "./by-hand"
import { fallible } from "./fallible"
import {
  allJobs,
  bellOf,
  emptied,
  enqueueRings,
  type RingWork,
  ringTable,
  running,
  until,
} from "./rings"

quietLog()
const clock = movableClock()

/** The pause between two tries at writing a result, which nobody wants to sit through. */
const PAUSE_MS = 500
const real = globalThis.setTimeout
const hasty = (work: () => void, ms?: number) => real(work, ms === PAUSE_MS ? 2 : ms)
const timers = spyOn(globalThis, "setTimeout").mockImplementation(hasty as typeof setTimeout)
afterAll(() => timers.mockRestore())

const LEASE_SECONDS = 30
const UNRECORDABLE = "The result could not be recorded. The log has the reason."

/** Rings that end together, each told by its number, once it is on disk or given up. */
function ringing(gate: Promise<void> = Promise.resolve()) {
  const settled: number[] = []
  const batches: number[][] = []
  const handler: RingWork<number> = {
    async run({ bell }) {
      await gate
      return { end: bell, settled: () => void settled.push(bell) }
    },
    async onDone(tx, bells) {
      batches.push(bells)
      for (const bell of bells) await happened(tx, `rung ${bell}`)
    },
  }
  return { handler, settled, batches, settledOnce: () => settled.toSorted((a, b) => a - b) }
}

const upTo = (count: number) => Array.from({ length: count }, (_, n) => n)
const rung = (bells: number[]) => bells.map((bell) => `rung ${bell}`).toSorted()

test("jobs that end together are written together, each once", async () => {
  await using it = await testStore()
  const gate = Promise.withResolvers<void>()
  const rings = ringing(gate.promise)
  await enqueueRings(it.store, 250)
  await using loop = await running(it.store, rings.handler, { concurrency: 250 })
  while (loop.running < 250) await Bun.sleep(2)
  const before = it.store.stats.closures

  gate.resolve()
  await emptied(it.store)
  expect(it.store.stats.closures - before).toBeLessThan(20)
  expect(Math.max(...rings.batches.map(({ length }) => length))).toBeLessThanOrEqual(100)
  expect((await types(it.store.read)).toSorted()).toEqual(rung(upTo(250)))
  await loop.stop(20_000)
  expect(rings.settledOnce()).toEqual(upTo(250))
})

test("of a hundred ends one breaks a rule: it alone is buried, the others are written", async () => {
  await using it = await testStore()
  const gate = Promise.withResolvers<void>()
  const rings = ringing(gate.promise)
  const { onDone } = rings.handler
  await enqueueRings(it.store, 100)
  await using loop = await running(
    it.store,
    {
      ...rings.handler,
      async onDone(tx, bells) {
        await onDone?.(tx, bells)
        if (bells.includes(41)) throw new Error("no such column")
      },
    },
    { concurrency: 100 },
  )
  while (loop.running < 100) await Bun.sleep(2)

  gate.resolve()
  const dead = (rows: queue.JobRow[]) => rows.every(({ state }) => state === queue.DEAD)
  const left = await until(it.store, (rows) => rows.length === 1 && dead(rows))
  expect(left.map((job) => [bellOf(job), job.last_error])).toEqual([[41, UNRECORDABLE]])
  await loop.stop(20_000)
  const others = upTo(100).filter((bell) => bell !== 41)
  expect((await types(it.store.read)).toSorted()).toEqual(rung(others))
  expect(rings.settledOnce()).toEqual(upTo(100))
})

test("who lost the lease in the middle of many writes nothing, and is settled all the same", async () => {
  await using it = await testStore()
  const { store } = it
  const gate = Promise.withResolvers<void>()
  const rings = ringing(gate.promise)
  await enqueueRings(store, 9)
  // Without a free slot this loop cannot be the one that claims what is lost.
  const loop = await running(store, rings.handler, { concurrency: 9 })
  while (loop.running < 9) await Bun.sleep(2)
  clock.advance({ seconds: LEASE_SECONDS + 1 })
  const lost = (await allJobs(store)).filter((job) => bellOf(job) === 4)
  const others = (await allJobs(store)).filter((job) => bellOf(job) !== 4)
  expect(
    await queue.sweep(
      store,
      others.map(({ id }) => id),
    ),
  ).toBe(1)
  await queue.claim(store, 1, { owner: "another", lease_ms: 1000 })

  gate.resolve()
  await loop.stop(20_000)
  expect(await allJobs(store)).toMatchObject([
    { id: lost[0]?.id, owner: "another", attempt: 2, state: queue.LEASED },
  ])
  expect((await types(store.read)).toSorted()).toEqual(rung(others.map(bellOf)))
  expect(rings.settledOnce()).toEqual(upTo(9))
})

test("a job that its own node claimed again ends by the later attempt alone", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 2)
  const lease = { owner: "me", lease_ms: 30_000 }
  const [first, second] = await queue.claim(it.store, 2, lease)
  if (!first || !second) throw new Error("two jobs were expected")
  clock.advance({ seconds: LEASE_SECONDS + 1 })
  expect(await queue.sweep(it.store, [second.id])).toBe(1)
  const [again] = await queue.claim(it.store, 1, lease)
  if (!again) throw new Error("the job is due again")

  const held = await it.store.tx((tx) => queue.completeAll(tx, [again, second, first]))
  expect(held).toEqual(new Set([again, second]))
  expect(await allJobs(it.store)).toEqual([])
})

test("ends that storage refuses are kept until it takes them, and no job runs twice", async () => {
  await using it = await testStore()
  const faulty = fallible(it.store)
  const rings = ringing()
  const { run } = rings.handler
  let ran = 0
  await enqueueRings(it.store, 60)
  const loop = await running(
    faulty.store,
    {
      ...rings.handler,
      run(ring, job) {
        if (++ran === 17) faulty.fail()
        return run(ring, job)
      },
    },
    { concurrency: 10 },
  )
  while (faulty.refused() < 10) await Bun.sleep(2)
  const waiting = loop.running
  expect(waiting).toBeGreaterThan(0)
  faulty.mend()
  await emptied(it.store)
  await loop.stop(20_000)
  expect(ran).toBe(60)
  expect((await types(it.store.read)).toSorted()).toEqual(rung(upTo(60)))
  expect(rings.settledOnce()).toEqual(upTo(60))
})

/** One leased job, with a settler of its own. */
async function oneClaimed(store: Store, broken: Partial<RingWork<number>> = {}) {
  await enqueueRings(store, 1)
  const lease = { owner: "me", lease_ms: 30_000 }
  const [job] = await queue.claim(store, 1, lease)
  if (!job) throw new Error("there is no job")
  const table = ringTable<number>({ run: async () => ({}), ...broken })
  const settlerOf = (on: Store) => new Settler(on, table, queue.leasesOf(on, lease))
  return { job, settlerOf }
}

test("once it is closed nobody waits for storage that refuses, and the place is given back once", async () => {
  await using it = await testStore()
  const { job, settlerOf } = await oneClaimed(it.store)
  const faulty = fallible(it.store)
  const settler = settlerOf(faulty.store)
  let settled = 0
  faulty.fail()
  const recorded = settler.settle(job, { end: 1, settled: () => void settled++ })
  while (faulty.refused() < 3) await Bun.sleep(2)
  expect(settled).toBe(0)
  settler.close()
  await recorded
  expect(settled).toBe(1)
  expect(await allJobs(it.store)).toHaveLength(1)
})

test("an end that nobody can write does not end its job in silence", async () => {
  await using it = await testStore()
  const onDone = () => Promise.reject(new Error("no such column"))
  const { job, settlerOf } = await oneClaimed(it.store, { onDone })
  await settlerOf(it.store).settle(job, { end: 1 })
  expect(await allJobs(it.store)).toMatchObject([
    { state: queue.DEAD, last_error: UNRECORDABLE, attempt: 1 },
  ])
})

test("who alone meets trouble of the storage keeps the others only for a while", async () => {
  await using it = await testStore()
  const gate = Promise.withResolvers<void>()
  let settled = 0
  const handler: RingWork<number> = {
    async run({ bell }) {
      await gate.promise
      return { end: bell, settled: () => void settled++ }
    },
    async onDone(tx, bells) {
      for (const bell of bells) await happened(tx, `rung ${bell}`)
      const full = Object.assign(new Error("could not extend file"), { errno: "53100" })
      if (bells.includes(4)) throw full
    },
  }
  await enqueueRings(it.store, 20)
  await using loop = await running(it.store, handler, { concurrency: 20 })
  while (loop.running < 20) await Bun.sleep(2)
  gate.resolve()
  while (settled < 19) await Bun.sleep(20)
  expect((await types(it.store.read)).toSorted()).not.toContain("rung 4")
  expect(loop.running).toBe(1) // that one insists until it is stopped
  loop.stop(0)
})
