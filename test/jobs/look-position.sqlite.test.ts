import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import { claimsOf } from "../../src/jobs/claims"
import { type JobRow, jobRows } from "../../src/jobs/jobs"
import { jobs } from "../../src/jobs/tables"
import { PRIORITIES } from "../../src/jobs/work-item"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { bellOf, enqueueRings } from "./rings"

quietLog()

const normal = (limit: number) => ({ partition: PRIORITIES.normal, limit })

/** A backlog of ten jobs on which five looks took one each. */
async function halfClaimed() {
  const it = await testStore()
  const limits: number[] = []
  const [due, dueAtOnce] = [jobRows.due.bind(jobRows), jobRows.dueAtOnce.bind(jobRows)]
  const counted = <Found extends unknown[]>(found: Found): Found => {
    limits.push(found.length)
    return found
  }
  const rows = Object.assign(Object.create(jobRows) as typeof jobRows, {
    ready: jobRows.ready.bind(jobRows),
    next: jobRows.next.bind(jobRows),
    dueAtOnce: (...given: Parameters<typeof dueAtOnce>) => counted(dueAtOnce(...given)),
    // Of rows that were just written only the order is read.
    due: async (...given: Parameters<typeof due>) => counted(await due(...given)),
  })
  await enqueueRings(it.store, 10)
  const claims = claimsOf<JobRow>(
    it.store,
    { rows },
    { owner: "me", lease_ms: 30_000, alone: true },
  )
  const claimed: JobRow[] = []
  for (let look = 0; look < 5; look++) claimed.push(...(await claims.claim(normal(1))))
  return { ...it, claims, claimed, read: limits }
}

test("a look goes on behind the rows in flight and does not read them again", async () => {
  await using it = await halfClaimed()
  expect(it.claimed.map(bellOf)).toEqual([0, 1, 2, 3, 4])
  expect(it.read).toEqual([1, 1, 1, 1, 1])
})

test("what is released before that place is claimed next", async () => {
  await using it = await halfClaimed()
  await it.claims.release(it.claimed.slice(1, 3))
  expect((await it.claims.claim(normal(3))).map(bellOf)).toEqual([1, 2, 5])
})

test("what another part of the process makes due before that place is claimed next", async () => {
  await using it = await halfClaimed()
  const early = { run_at: secondsFromNow(-3600) }
  const last = (await it.store.read.select().from(jobs)).find((row) => bellOf(row) === 9)
  await it.store.tx((tx) =>
    tx
      .update(jobs)
      .set(early)
      .where(eq(jobs.id, last?.id ?? "")),
  )
  expect((await it.claims.claim(normal(2))).map(bellOf)).toEqual([9, 5])
})

test("a look that finds too little begins anew", async () => {
  await using it = await halfClaimed()
  expect((await it.claims.claim(normal(10))).map(bellOf)).toEqual([5, 6, 7, 8, 9])
  expect(await it.claims.claim(normal(10))).toEqual([])
  await it.claims.release(it.claimed)
  expect((await it.claims.claim(normal(10))).map(bellOf)).toEqual([0, 1, 2, 3, 4])
})
