import { expect, test } from "bun:test"
import { now } from "../../src/core/time"
import type { Store } from "../../src/store/store"
import { movableClock } from "../harness/clock"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { refusal } from "../store/facts"
import * as queue from "./by-hand"
import { allJobs, enqueueRings } from "./rings"

quietLog()

const clock = movableClock()
const LEASE_SECONDS = 30

const lease = (owner: string) => ({ owner, lease_ms: LEASE_SECONDS * 1000 })

async function claimOne(store: Store, owner: string) {
  const [job, ...more] = await queue.claim(store, 1, lease(owner))
  if (!job || more.length > 0) throw new Error("exactly one job was expected")
  return job
}

const ends: [string, (store: Store, job: queue.JobRow) => Promise<boolean>][] = [
  ["complete", (store, job) => store.tx((tx) => queue.complete(tx, job))],
  ["release", (store, job) => store.tx((tx) => queue.release(tx, job, now(), "late"))],
  ["bury", (store, job) => store.tx((tx) => queue.bury(tx, job, "late"))],
  ["give back", (store, job) => store.tx((tx) => queue.giveBack(tx, job))],
]

test.each(ends)("who lost the lease cannot %s what another one holds", async (_, end) => {
  await using it = await testStore()
  const { store } = it
  await enqueueRings(store, 1)

  const stale = await claimOne(store, "first")
  clock.advance({ seconds: LEASE_SECONDS + 1 })
  expect(await queue.sweep(store, [])).toBe(1)
  const current = await claimOne(store, "second")
  expect([stale.attempt, current.attempt]).toEqual([1, 2])

  const before = await allJobs(store)
  expect(await end(store, stale)).toBe(false)
  expect(await allJobs(store)).toEqual(before)
  expect(await end(store, current)).toBe(true)
})

test.each(ends)("an earlier attempt of the same owner cannot %s the later one", async (_, end) => {
  await using it = await testStore()
  const { store } = it
  await enqueueRings(store, 1)

  const stale = await claimOne(store, "me")
  await store.tx((tx) => queue.release(tx, stale, now(), null))
  const current = await claimOne(store, "me")
  const before = await allJobs(store)
  expect(await end(store, stale)).toBe(false)
  expect(await allJobs(store)).toEqual(before)
  expect(await end(store, current)).toBe(true)
})

test.each(ends)(
  "an attempt that was given back cannot %s the same one of another",
  async (_, end) => {
    await using it = await testStore()
    const { store } = it
    await enqueueRings(store, 1)

    const stale = await claimOne(store, "first")
    await store.tx((tx) => queue.giveBack(tx, stale))
    const current = await claimOne(store, "second")
    expect(current.attempt).toBe(stale.attempt)
    const before = await allJobs(store)
    expect(await end(store, stale)).toBe(false)
    expect(await allJobs(store)).toEqual(before)
    expect(await end(store, current)).toBe(true)
  },
)

test("the end of a job is undone with its closure", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 1)
  const job = await claimOne(it.store, "me")

  const failing = it.store.tx(async (tx) => {
    await queue.complete(tx, job)
    throw new Error("no end")
  })
  await refusal(failing)
  expect(await it.store.tx((tx) => queue.complete(tx, job))).toBe(true)
  expect(await allJobs(it.store)).toEqual([])
})

test("a lease that ran out is swept, one that is kept is not", async () => {
  await using it = await testStore()
  const { store } = it
  await enqueueRings(store, 2)
  const kept = await claimOne(store, "keeper")
  await claimOne(store, "sleeper")

  clock.advance({ seconds: LEASE_SECONDS - 10 })
  await queue.heartbeat(store, lease("keeper"), [kept.id])
  expect(await queue.sweep(store, [])).toBe(0)
  clock.advance({ seconds: 11 })
  expect(await queue.sweep(store, [])).toBe(1)
  const states = (await allJobs(store)).map(({ state, owner }) => ({ state, owner }))
  expect(states).toEqual([
    { state: queue.LEASED, owner: "keeper" },
    { state: queue.READY, owner: null },
  ])
})

test("a heartbeat keeps neither another's job nor a forgotten one of its own", async () => {
  await using it = await testStore()
  const { store } = it
  await enqueueRings(store, 3)
  const mine = await claimOne(store, "me")
  await claimOne(store, "me") // its claim never arrived
  const theirs = await claimOne(store, "them")

  clock.advance({ seconds: LEASE_SECONDS - 10 })
  await queue.heartbeat(store, lease("me"), [mine.id, theirs.id])
  clock.advance({ seconds: 11 })
  expect(await queue.sweep(store, [mine.id])).toBe(2)
  const leased = (await allJobs(store)).filter(({ state }) => state === queue.LEASED)
  expect(leased.map(({ id }) => id)).toEqual([mine.id])
})

test("what the sweeper itself works on is not swept, however late it is", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 1)
  const job = await claimOne(it.store, "me")

  clock.advance({ seconds: 45 * 86_400 }) // a clock that was set, or a laptop that slept
  expect(await queue.sweep(it.store, [job.id])).toBe(0)
  expect(await it.store.tx((tx) => queue.complete(tx, job))).toBe(true)
})

test("where nobody else can live every lease of a former life is free at once", async () => {
  await using it = await testStore()
  const { store } = it
  await enqueueRings(store, 700)
  const [former, me] = [await queue.claim(store, 600, lease("former")), await claimOne(store, "me")]
  expect(former).toHaveLength(600)

  let freed = 0
  for (let some = -1; some !== 0; freed += some) some = await queue.sweepAll(store, "me")
  expect(freed).toBe(600)
  expect(await store.tx((tx) => queue.complete(tx, me))).toBe(true)
  const again = await queue.claim(store, 1000, lease("me"))
  expect(again).toHaveLength(699)
  expect(again.every(({ attempt }) => attempt === 1)).toBe(true) // a crash uses up no try
})
