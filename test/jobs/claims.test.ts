import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { changeUnclaimed, claimsOf } from "../../src/jobs/claims"
import { inFlightOf } from "../../src/jobs/in-flight"
import { type JobRow, jobRows } from "../../src/jobs/jobs"
import { WorkLoop } from "../../src/jobs/loop"
import { jobs } from "../../src/jobs/tables"
import { LEASED, PRIORITIES, READY } from "../../src/jobs/work-item"
import { WorkRows } from "../../src/jobs/work-rows"
import type { Store } from "../../src/store/store"
import { movableClock } from "../harness/clock"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { refusal } from "../store/facts"
import { allJobs, bellOf, emptied, enqueueRings, type Ring, ringTable, running } from "./rings"

quietLog()
const clock = movableClock()

const claimsBy = (store: Store, alone: boolean, owner = "me") =>
  claimsOf<JobRow>(store, { rows: jobRows }, { owner, lease_ms: 30_000, alone })

const normal = (limit: number) => ({ partition: PRIORITIES.normal, limit })

// Where others share the database, a process that says it is alone leases all the same.
describe.each([true, false])("claims of a process, alone: %p", (alone) => {
  test("the oldest come first, at most as many as are wanted, and none twice", async () => {
    await using it = await testStore()
    await enqueueRings(it.store, 25)
    const claims = claimsBy(it.store, alone)
    const first = await claims.claim(normal(10))
    expect(first.map(bellOf)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect((await claims.claim(normal(10))).map(bellOf)[0]).toBe(10)
    expect(await claims.claim(normal(10))).toHaveLength(5)
    expect(await claims.claim(normal(10))).toEqual([])
  })

  test("a claimed row counts the attempt that begins, and says whose it is", async () => {
    await using it = await testStore()
    await enqueueRings(it.store, 1)
    const [row] = await claimsBy(it.store, alone).claim(normal(1))
    expect(row).toMatchObject({ attempt: 1, state: LEASED, owner: "me" })
  })

  test("what is released is ready as before, and its claim writes nothing any more", async () => {
    await using it = await testStore()
    await enqueueRings(it.store, 2)
    const before = await allJobs(it.store)
    const claims = claimsBy(it.store, alone)
    const claimed = await claims.claim(normal(2))
    await claims.release(claimed)
    expect(await allJobs(it.store)).toEqual(before)
    expect((await it.store.tx((tx) => claims.held(tx, claimed))).size).toBe(0)
    const [again] = await claimsBy(it.store, alone, "another").claim(normal(1))
    expect(again).toMatchObject({ attempt: 1, owner: "another" })
  })

  test("a fresh claim is not read again; an older one is, and shows what changed", async () => {
    await using it = await testStore()
    await enqueueRings(it.store, 1)
    const claims = claimsBy(it.store, alone)
    const [row] = await claims.claim(normal(1))
    if (!row) throw new Error("there is no job")
    await it.store.tx((tx) => tx.update(jobs).set({ last_error: "torn" }))
    expect(await claims.fresh(row)).toMatchObject({ last_error: null })
    clock.advance({ seconds: 2 })
    expect(await claims.fresh(row)).toMatchObject({ last_error: "torn", attempt: 1, state: LEASED })
    await it.store.tx((tx) => tx.delete(jobs))
    expect(await claims.fresh(row)).toBeUndefined()
  })

  test("what is claimed is not changed as if it waited, and what is being changed is not claimed", async () => {
    await using it = await testStore()
    await enqueueRings(it.store, 2)
    const claims = claimsBy(it.store, alone)
    const [claimed] = await claims.claim(normal(1))
    const ids = (await allJobs(it.store)).map(({ id }) => id)
    const during: JobRow[][] = []
    const changed = await changeUnclaimed(it.store, jobRows, ids, async (tx, unclaimed) => {
      for (const id of unclaimed) await tx.delete(jobs).where(eq(jobs.id, id))
      return unclaimed
    })
    during.push(await claims.claim(normal(2)))
    expect(changed).toHaveLength(1)
    expect(changed).not.toContain(claimed?.id ?? "")
    expect(during).toEqual([[]])
    expect((await allJobs(it.store)).map(({ id }) => id)).toEqual([claimed?.id ?? ""])
  })

  test("a change that fails leaves the row to the next claim", async () => {
    await using it = await testStore()
    await enqueueRings(it.store, 1)
    const [job] = await allJobs(it.store)
    const failing = changeUnclaimed(it.store, jobRows, [job?.id ?? ""], async () => {
      throw new Error("no")
    })
    expect(await refusal(failing)).toContain("no")
    expect(await claimsBy(it.store, alone).claim(normal(1))).toHaveLength(1)
  })
})

test("where a process is alone a claim writes nothing, and says in memory what it works on", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 3)
  const inFlight = inFlightOf(it.store.read, "jobs")
  if (!inFlight) return // several processes share this database
  const claims = claimsBy(it.store, true)
  const before = it.store.stats.closures
  const [first, ...others] = await claims.claim(normal(3))
  expect(it.store.stats.closures).toBe(before)
  expect(await allJobs(it.store)).toMatchObject([
    { state: READY },
    { state: READY },
    { state: READY },
  ])
  expect(inFlight.ids()).toHaveLength(3)
  for (const row of others) claims.end(row)
  expect(inFlight.ids()).toEqual([first?.id ?? ""])
})

test("of one share too many are in flight: what is behind them is found all the same", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 400)
  const claims = claimsBy(it.store, true)
  const all: number[] = []
  for (let at = 0; at < 10; at++) all.push(...(await claims.claim(normal(40))).map(bellOf))
  expect(all).toEqual(Array.from({ length: 400 }, (_, n) => n))
})

test("a share may be admitted in the transaction that claims it, or refused there", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 5)
  const claims = claimsBy(it.store, true)
  let counted = 0
  const admitted = await claims.claim({
    ...normal(5),
    async admit(_, claim) {
      counted = await claim(2)
    },
  })
  expect([counted, admitted.map(bellOf)]).toEqual([2, [0, 1]])
  expect(await claims.claim({ ...normal(5), admit: async () => {} })).toEqual([])
  expect(await claims.claim(normal(5))).toHaveLength(3)
})

test("what was claimed in a transaction that is not written is free for the next claim", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 3)
  const claims = claimsBy(it.store, true)
  const failing = claims.claim({
    ...normal(3),
    async admit(_, claim) {
      await claim(2)
      throw new Error("the disk is full")
    },
  })
  expect(await refusal(failing)).toBe("the disk is full")
  expect((await claims.claim(normal(3))).map(bellOf)).toEqual([0, 1, 2])
})

test("rows that were found ahead are free for the next claim when a look at the others fails", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 60)
  let is_broken = false
  class Breakable extends WorkRows<JobRow> {
    override due(...given: Parameters<typeof jobRows.due>) {
      return is_broken ? Promise.reject(new Error("a bad page")) : super.due(...given)
    }
    override dueAtOnce(...given: Parameters<typeof jobRows.dueAtOnce>) {
      if (is_broken) throw new Error("a bad page")
      return super.dueAtOnce(...given)
    }
  }
  const rows = new Breakable(jobs, jobs.priority, {})
  const lease = { owner: "me", lease_ms: 30_000, alone: true }
  const claims = claimsOf<JobRow>(it.store, { rows, looks_ahead: true }, lease)
  const bells = [...(await claims.claim(normal(10))), ...(await claims.claim(normal(10)))]
  is_broken = true
  expect(await refusal(claims.claim(normal(40)))).toBe("a bad page")
  is_broken = false
  for (let at = 0; at < 6; at++) bells.push(...(await claims.claim(normal(10))))
  const all = Array.from({ length: 60 }, (_, n) => n)
  expect(bells.map(bellOf).toSorted((a, b) => a - b)).toEqual(all)
})

test("urgent jobs that were claimed are not lost because the claim of the others fails", async () => {
  await using it = await testStore()
  const { store } = it
  await enqueueRings(store, 2, { priority: PRIORITIES.urgent })
  await enqueueRings(store, 2, {}, 5)
  const ran: number[] = []
  class Broken extends WorkRows<JobRow> {
    override due(...[db, share]: Parameters<typeof jobRows.due>) {
      const is_broken = share.partition === PRIORITIES.normal && ran.length < 2
      if (is_broken) return Promise.reject(new Error("one level is broken"))
      return super.due(db, share)
    }
    override dueAtOnce(...[db, share]: Parameters<typeof jobRows.dueAtOnce>) {
      const is_broken = share.partition === PRIORITIES.normal && ran.length < 2
      if (is_broken) throw new Error("one level is broken")
      return super.dueAtOnce(db, share)
    }
  }
  const work = {
    async run({ bell }: Ring) {
      ran.push(bell)
      return {}
    },
  }
  const rows = new Broken(jobs, jobs.priority, {})
  const table = { ...ringTable(work), rows }
  const loop = new WorkLoop({ store, table, concurrency: 10, lease_ms: 30_000, alone: true })
  await loop.start()
  await emptied(store)
  await loop.stop(1000)
  expect(ran).toEqual([0, 1, 5, 6])
})

test("a claim that fails with nothing claimed says so, and the work stays", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 1)
  const away = Object.assign(Object.create(it.store) as Store, {
    tx: () => Promise.reject(new Error("no")),
  })
  const failing = claimsBy(away, false).claim(normal(1))
  expect(await refusal(failing)).toContain("no")
  expect(await allJobs(it.store)).toMatchObject([{ state: READY, attempt: 0 }])
  await using _ = await running(it.store, { run: async () => ({}) })
  await emptied(it.store)
})

test("ids of rows that are gone are no hindrance", async () => {
  await using it = await testStore()
  const claims = claimsBy(it.store, true)
  expect(await claims.claimOne(idFor("nobody"))).toBeUndefined()
})
