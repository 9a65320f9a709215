import { expect, test } from "bun:test"
import { Claims } from "../../src/jobs/job-claims"
import { bind, type JobHandler } from "../../src/jobs/job-handler"
import { claim, complete, LEASED, PRIORITIES, READY } from "../../src/jobs/queue"
import type { Closure, Store } from "../../src/store/store"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { happened, types } from "../store/facts"
import { allJobs, bellOf, emptied, enqueueRings, type Ring, ring, running, until } from "./rings"

quietLog()

const LEASE = { owner: "me", lease_ms: 30_000 }

/** Learns the bell of each job, and writes that it did, unless the bell is cracked. */
const learner = (cracked = -1): JobHandler<Ring, string> => ({
  run: async () => ({}),
  async onClaim(tx, claimed) {
    await happened(tx, `claimed ${claimed.map(bellOf).toSorted().join(" ")}`)
    if (claimed.some((job) => bellOf(job) === cracked)) throw new Error("a cracked bell")
    return new Map(claimed.map((job) => [job.id, `bell ${bellOf(job)}`]))
  },
  onGiveBack: (tx, { bell }) => happened(tx, `back ${bell}`),
})

const claimsOf = (store: Store, handler: JobHandler<Ring, string>) =>
  new Claims(store, bind(ring, handler), LEASE)

test("what is learned with the claim is known of each job, and written with it", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 3)
  const claims = claimsOf(it.store, learner())
  const claimed = await claims.claim(2)
  expect(claimed.map((job) => claims.known(job))).toEqual(["bell 0", "bell 1"])
  expect(await types(it.store.read)).toEqual(["claimed 0 1"])
})

test("jobs that are given back are ready as before, and their handler undoes what it did", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 3)
  const claims = claimsOf(it.store, learner())
  const [first, second] = await claims.claim(3)
  if (!first || !second) throw new Error("there are no jobs")
  await it.store.tx(async (tx) => {
    await complete(tx, first)
  })
  await claims.giveBack([first, second]) // the first is over: nothing of it is undone
  expect(await allJobs(it.store)).toMatchObject([
    { state: READY, attempt: 0, owner: null },
    { state: LEASED, attempt: 1, owner: "me" },
  ])
  expect(await types(it.store.read)).toEqual(["claimed 0 1 2", "back 1"])
})

test("a claim whose work fails is made without it, and each job fails or ends alone", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 5)
  const known: unknown[] = []
  const { onClaim } = learner(3)
  await using _ = await running(it.store, {
    async run({ bell }, _job, learned) {
      known.push(learned)
      if (bell === 3) throw new Error("a cracked bell")
      return {}
    },
    ...(onClaim && { onClaim: onClaim as never }),
  })
  const left = await until(it.store, (rows) => rows.length === 1 && rows[0]?.state === READY)
  expect(left.map(bellOf)).toEqual([3])
  expect(left).toMatchObject([
    { attempt: 1, last_error: "The job failed. The log has the reason." },
  ])
  expect(known).toEqual(Array.from({ length: 5 }, () => undefined))
  expect(await types(it.store.read)).toEqual([])
})

test("urgent jobs that were claimed are not lost because work of the others fails", async () => {
  await using it = await testStore()
  const { store } = it
  await enqueueRings(store, 2, { priority: PRIORITIES.urgent })
  await enqueueRings(store, 2, {}, 5)
  const claims = claimsOf(store, learner(5))
  const urgent = await claims.claim(10)
  expect(urgent.map((job) => claims.known(job))).toEqual(["bell 0", "bell 1"])
  const others = await claims.claim(10)
  expect(others.map(bellOf)).toEqual([5, 6])
  expect(others.map((job) => claims.known(job))).toEqual([undefined, undefined])
  expect(await claims.claim(10)).toEqual([])
})

test("of a claim that conflicted only its last run is known", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 2)
  let runs = 0
  const claims = claimsOf(twice(it.store), {
    ...learner(),
    async onClaim(_tx, claimed) {
      const some = ++runs === 1 ? claimed : claimed.slice(0, 1)
      return new Map(some.map((job) => [job.id, `run ${runs}`]))
    },
  })
  const claimed = await claims.claim(2)
  expect(claimed.map((job) => claims.known(job)).toSorted()).toEqual(["run 2", undefined])
})

/** The same store, where every transaction runs into a conflict once. */
function twice(store: Store): Store {
  const tx = async <Result>(closure: Closure<Result>): Promise<Result> => {
    const conflict = new Error("conflict")
    const first = store.tx(async (one) => {
      await closure(one)
      throw conflict
    })
    await first.catch((error) => {
      if (error !== conflict) throw error
    })
    return store.tx(closure)
  }
  return Object.assign(Object.create(store) as Store, { tx })
}

test("a claim that fails with nothing taken says so", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 1)
  const failing = claim(it.store, 1, LEASE, () => Promise.reject(new Error("no")))
  expect(await failing.catch((error: Error) => error.message)).toBe("no")
  expect(await allJobs(it.store)).toMatchObject([{ state: READY, attempt: 0 }])
  await using _ = await running(it.store, { run: async () => ({}) })
  await emptied(it.store)
})
