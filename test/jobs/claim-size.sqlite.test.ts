import { expect, test } from "bun:test"
import { monotonic } from "../../src/core/time"
import type { JobRow } from "../../src/jobs/jobs"
import { testStore } from "../harness/store"
import { emptied, enqueueRings, running } from "./rings"

/** The sizes of the claims by which a loop with ten places does its work. */
async function sizesOf(jobs: number, claim_ms: number): Promise<number[]> {
  await using it = await testStore()
  await enqueueRings(it.store, jobs)
  const sizes: number[] = []
  const work = {
    run: async () => ({}),
    onClaim(claimed: JobRow[]) {
      sizes.push(claimed.length)
      for (const begun = monotonic(); monotonic() - begun < claim_ms; );
    },
  }
  await using _ = await running(it.store, work, { alone: true })
  await emptied(it.store)
  return sizes
}

test("claims grow while work is done as soon as it is claimed", async () => {
  const sizes = await sizesOf(3000, 0)
  expect(Math.max(...sizes)).toBeGreaterThan(20)
})

test("a claim that holds everybody else up is not made larger", async () => {
  const sizes = await sizesOf(200, 3)
  expect(Math.max(...sizes)).toBe(10)
})
