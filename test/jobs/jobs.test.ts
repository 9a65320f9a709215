import { expect, test } from "bun:test"
import { asc } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import { purgeDead } from "../../src/jobs/jobs"
import { jobs } from "../../src/jobs/tables"
import { wakeUpOf } from "../../src/jobs/work-rows"
import type { Store } from "../../src/store/store"
import { movableClock } from "../harness/clock"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { refusal } from "../store/facts"
import * as queue from "./by-hand"

quietLog()

const clock = movableClock()
const LEASE_SECONDS = 30
const { urgent, normal, bulk } = queue.PRIORITIES

const ring: queue.JobKind<{ bell: number }> = { name: "bell.ring", schedule: () => 1 }

const lease = (owner: string) => ({ owner, lease_ms: LEASE_SECONDS * 1000 })

const ringing = (bell: number, more: Partial<queue.NewWork<{ bell: number }>> = {}) => ({
  payload: { bell },
  project_id: idFor("p"),
  ...more,
})

const enqueueRings = (store: Store, count: number) =>
  store.tx((tx) =>
    queue.enqueueAll(
      tx,
      ring,
      Array.from({ length: count }, (_, bell) => ringing(bell)),
    ),
  )

const all = (store: Store) => store.read.select().from(jobs).orderBy(asc(jobs.id))

const bells = (claimed: queue.JobRow[]) =>
  claimed.map(({ payload }) => (payload as { bell: number }).bell)

async function claimOne(store: Store, owner: string) {
  const [job, ...more] = await queue.claim(store, 1, lease(owner))
  if (!job || more.length > 0) throw new Error("exactly one job was expected")
  return job
}

test("a job enqueued by a closure that fails does not exist, and rings no bell", async () => {
  await using it = await testStore()
  let rung = 0
  const off = wakeUpOf(it.store.read, "jobs").onWakeUp(() => rung++)

  const failing = it.store.tx(async (tx) => {
    await queue.enqueue(tx, ring, ringing(1))
    throw new Error("no bell")
  })
  await refusal(failing)
  expect(await all(it.store)).toEqual([])
  expect(rung).toBe(0)

  await enqueueRings(it.store, 1)
  await Bun.sleep(0)
  expect(rung).toBe(1)
  off()
})

test("a claimed job is whole: payload, owner, first attempt", async () => {
  await using it = await testStore()
  const payload = { bell: 7, name: "Zoë \u0000 \ud800" }
  await it.store.tx((tx) => queue.enqueue(tx, ring, { ...ringing(7), payload }))

  expect(await queue.claim(it.store, 10, lease("me"))).toMatchObject([
    {
      name: "bell.ring",
      payload,
      owner: "me",
      attempt: 1,
      state: queue.LEASED,
    },
  ])
  expect(await queue.claim(it.store, 10, lease("me"))).toEqual([])
})

test("a claim takes the oldest first, and at most what it asked for", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 25)

  expect(bells(await queue.claim(it.store, 10, lease("a")))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  expect(bells(await queue.claim(it.store, 10, lease("b")))[0]).toBe(10)
  expect(await queue.claim(it.store, 10, lease("c"))).toHaveLength(5)
})

test("claims at the same moment share the jobs, and none twice", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 300)

  const owners = Array.from({ length: 8 }, (_, n) => `owner ${n}`)
  const claims = await Promise.all(owners.map((name) => queue.claim(it.store, 50, lease(name))))
  const later = await queue.claim(it.store, 300, lease("last"))
  const ids = [...claims.flat(), ...later].map(({ id }) => id)
  expect(ids).toHaveLength(300)
  expect(new Set(ids).size).toBe(300)
  expect(Math.max(...claims.map(({ length }) => length))).toBeLessThanOrEqual(50)
})

test("the more urgent comes first, and one level does not wait for another's future", async () => {
  await using it = await testStore()
  await it.store.tx(async (tx) => {
    const later = secondsFromNow(3600)
    await queue.enqueue(tx, ring, ringing(1, { priority: urgent, run_at: later }))
    await queue.enqueue(tx, ring, ringing(2, { priority: bulk }))
    await queue.enqueue(tx, ring, ringing(3, { priority: normal, run_at: later }))
    await queue.enqueue(tx, ring, ringing(4))
    await queue.enqueue(tx, ring, ringing(5, { priority: urgent }))
  })

  expect(bells(await queue.claim(it.store, 10, lease("me")))).toEqual([5, 4, 2])
  clock.advance({ seconds: 3601 })
  expect(bells(await queue.claim(it.store, 10, lease("me")))).toEqual([1, 3])
})

test("the next due moment is the soonest of all levels", async () => {
  await using it = await testStore()
  expect(await queue.nextDue(it.store.read)).toBeUndefined()
  const [soon, late] = [secondsFromNow(60), secondsFromNow(3600)]
  await it.store.tx(async (tx) => {
    await queue.enqueue(tx, ring, ringing(1, { priority: urgent, run_at: late }))
    await queue.enqueue(tx, ring, ringing(2, { priority: bulk, run_at: soon }))
  })

  expect(await queue.nextDue(it.store.read)).toBe(Date.parse(soon))
})

test("a released job comes again at its time, and remembers why", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 1)
  const job = await claimOne(it.store, "me")
  await it.store.tx((tx) => queue.release(tx, job, secondsFromNow(60), "the rope is torn"))

  const state = { state: queue.READY, owner: null, lease_until: null, attempt: 1 }
  expect(await all(it.store)).toMatchObject([{ ...state, last_error: "the rope is torn" }])
  expect(await queue.claim(it.store, 1, lease("me"))).toEqual([])
  clock.advance({ seconds: 61 })
  expect((await claimOne(it.store, "me")).attempt).toBe(2)
})

test("a job given back has not used up an attempt", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 1)
  const before = await all(it.store)
  const job = await claimOne(it.store, "me")

  await it.store.tx((tx) => queue.giveBack(tx, job))
  expect(await all(it.store)).toEqual(before)
  expect((await claimOne(it.store, "other")).attempt).toBe(1)
})

test("a buried job stays visible with its reason, until it is old", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 1)
  const job = await claimOne(it.store, "me")
  await it.store.tx((tx) => queue.bury(tx, job, "the bell is broken"))

  const [dead] = await all(it.store)
  expect(dead).toMatchObject({ state: queue.DEAD, last_error: "the bell is broken", owner: null })
  expect(Date.parse(dead?.run_at ?? "")).toBeGreaterThan(Date.now() - 5000)
  expect(await queue.claim(it.store, 1, lease("me"))).toEqual([])
  expect(await purgeDead(it.store)).toBe(0)
  clock.advance({ seconds: 31 * 86_400 })
  expect(await purgeDead(it.store)).toBe(1)
  expect(await all(it.store)).toEqual([])
})
