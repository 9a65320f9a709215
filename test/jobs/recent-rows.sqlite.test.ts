import { describe, expect, test } from "bun:test"
import { inArray } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { now, secondsFromNow } from "../../src/core/time"
import { arrivalsOf } from "../../src/jobs/arrivals"
import { claimsOf } from "../../src/jobs/claims"
import { inFlightOf, isCurrent } from "../../src/jobs/in-flight"
import { type JobRow, jobRows } from "../../src/jobs/jobs"
import { jobs } from "../../src/jobs/tables"
import { LEASED, PRIORITIES } from "../../src/jobs/work-item"
import { inserter } from "../../src/store/statements"
import type { Store, Tx } from "../../src/store/store"
import { movableClock } from "../harness/clock"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { allJobs, bellOf, enqueueRings } from "./rings"

quietLog()

const claimsBy = (store: Store, alone: boolean) =>
  claimsOf<JobRow>(store, { rows: jobRows }, { owner: "me", lease_ms: 30_000, alone })

const time = movableClock()

const insertQuietly = inserter(jobs, { quiet: true })

const normal = (limit: number) => ({ partition: PRIORITIES.normal, limit })

describe("rows that were just written", () => {
  const known = (store: Store) => arrivalsOf<JobRow>(store.read, "jobs")
  const marked = async (store: Store) => {
    const rows = await allJobs(store)
    for (const row of rows) known(store)?.keep(row.id, { ...row, last_error: "of memory" })
    return rows
  }

  test("are claimed from memory, in the order of the database, once", async () => {
    await using it = await testStore()
    await enqueueRings(it.store, 3)
    await marked(it.store)
    await enqueueRings(it.store, 1, {}, 3)
    await marked(it.store)
    const claims = claimsBy(it.store, true)
    const claimed = await claims.claim(normal(10))
    expect(claimed.map(bellOf)).toEqual([0, 1, 2, 3])
    expect(claimed.map(({ last_error }) => last_error)).toEqual(Array(4).fill("of memory"))
    expect(claimed[0]).toMatchObject({ attempt: 1, state: LEASED, owner: "me" })
    await claims.release(claimed)
    const [again] = await claims.claim(normal(1))
    expect(again).toMatchObject({ attempt: 1, last_error: null })
  })

  test("are read where the table has changed since", async () => {
    await using it = await testStore()
    await enqueueRings(it.store, 2)
    await marked(it.store)
    await it.store.tx((tx) => tx.update(jobs).set({ last_error: "torn" }))
    const claimed = await claimsBy(it.store, true).claim(normal(2))
    expect(claimed.map(({ last_error }) => last_error)).toEqual(["torn", "torn"])
  })

  test("are few and due: the first ones stay, because they are claimed first", async () => {
    await using it = await testStore()
    const recent = known(it.store)
    const rows = Array.from({ length: 2_500 }, () => ({ id: newId(), run_at: now() }) as JobRow)
    for (const row of rows) recent?.keep(row.id, row)
    expect(recent?.size).toBe(2_000)
    expect(recent?.remove(rows[0]?.id ?? "")).toEqual(rows[0])
    expect(recent?.remove(rows.at(-1)?.id ?? "")).toBeUndefined()
    recent?.keep("later", { id: "later", run_at: secondsFromNow(60) } as JobRow)
    expect(recent?.size).toBe(1_999)
  })
})

describe("where a look has claimed everything that is due", () => {
  async function allClaimed(it: Awaited<ReturnType<typeof testStore>>) {
    await enqueueRings(it.store, 2)
    const claims = claimsBy(it.store, true)
    expect(await claims.claim(normal(10))).toHaveLength(2)
    return claims
  }

  /** Rows that no memory has, as a quiet write leaves them. */
  async function written(it: Awaited<ReturnType<typeof testStore>>, run_at: string) {
    const [row] = await allJobs(it.store)
    if (!row) throw new Error("there is no job")
    const fresh = { ...row, id: newId(), run_at, created_at: run_at }
    await it.store.tx((tx) => insertQuietly(tx, [fresh]))
    return fresh
  }

  test("only rows of memory are claimed, until the table changes", async () => {
    await using it = await testStore()
    const claims = await allClaimed(it)
    const hidden = await written(it, now())
    await enqueueRings(it.store, 1, {}, 2)
    expect((await claims.claim(normal(10))).map(bellOf)).toEqual([2])
    expect(await claims.claim(normal(10))).toEqual([])
    await it.store.tx((tx) => tx.update(jobs).set({ last_error: "torn" }))
    expect((await claims.claim(normal(10))).map(({ id }) => id)).toEqual([hidden.id])
  })

  test("the next row that becomes due is found at its time", async () => {
    await using it = await testStore()
    await enqueueRings(it.store, 1)
    const later = await written(it, secondsFromNow(0.2))
    const claims = claimsBy(it.store, true)
    expect(await claims.claim(normal(10))).toHaveLength(1)
    expect(await claims.claim(normal(10))).toEqual([])
    time.advance({ seconds: 1 })
    expect((await claims.claim(normal(10))).map(({ id }) => id)).toEqual([later.id])
  })

  test("rows that were too many for that look are found, also where rows in flight were deleted", async () => {
    await using it = await testStore()
    await enqueueRings(it.store, 20)
    const claims = claimsBy(it.store, true)
    const [one, other] = await claims.claim(normal(5))
    const gone = [one?.id ?? "", other?.id ?? ""]
    await it.store.tx((tx) => tx.delete(jobs).where(inArray(jobs.id, gone)))
    expect(await claims.claim(normal(14))).toHaveLength(14)
    expect((await claims.claim(normal(10))).map(bellOf)).toEqual([19])
  })

  test("a row is found that was kept from that look and did not change", async () => {
    await using it = await testStore()
    await enqueueRings(it.store, 2)
    const [first] = await allJobs(it.store)
    const reserved = inFlightOf(it.store.read, "jobs")?.reserve([first?.id ?? ""])
    await it.store.tx((tx) => tx.update(jobs).set({ last_error: "torn" }))
    const claims = claimsBy(it.store, true)
    expect((await claims.claim(normal(10))).map(bellOf)).toEqual([1])
    reserved?.end()
    expect((await claims.claim(normal(10))).map(bellOf)).toEqual([0])
  })

  test("a row that waits again is found at once", async () => {
    await using it = await testStore()
    const claims = await allClaimed(it)
    const again = await written(it, now())
    claims.lookAgain?.()
    expect((await claims.claim(normal(10))).map(({ id }) => id)).toEqual([again.id])
  })
})

describe("a claimed row", () => {
  test("is current until the table is changed, also in the same transaction", async () => {
    await using it = await testStore()
    const { store } = it
    await enqueueRings(store, 2)
    const claims = claimsBy(store, true)
    const [one, other] = await claims.claim(normal(2))
    if (!one || !other) throw new Error("there is no job")
    const change = (tx: Tx) => tx.update(jobs).set({ last_error: "torn" })
    const found = await store.tx(async (tx) => {
      const before = isCurrent(tx, "jobs", one)
      await change(tx)
      return [before, isCurrent(tx, "jobs", one)]
    })
    expect(found).toEqual([true, false])
    expect(await store.tx(async (tx) => isCurrent(tx, "jobs", other))).toBe(false)
    await claims.release([one, other])
    const [again] = await claims.claim(normal(1))
    if (!again) throw new Error("there is no job")
    expect(await store.tx(async (tx) => isCurrent(tx, "jobs", again))).toBe(true)
  })

  test("is not current where it was claimed while a change was not committed", async () => {
    await using it = await testStore()
    const { store } = it
    await enqueueRings(store, 1)
    const claims = claimsBy(store, true)
    const claimed: JobRow[] = []
    await store.tx(async (tx) => {
      await tx.update(jobs).set({ last_error: "torn" })
      claimed.push(...(await claims.claim(normal(1))))
    })
    const [row] = claimed
    if (!row) throw new Error("there is no job")
    expect(row.last_error).toBeNull()
    expect(await store.tx(async (tx) => isCurrent(tx, "jobs", row))).toBe(false)
  })
})
