import { expect, test } from "bun:test"
import { settings } from "../../src/core/config"
import { jobs } from "../../src/jobs/tables"
import { openStore } from "../../src/store/open"
import { expectNoneTwice } from "../harness/nothing-lost"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { enqueueRings, running } from "./rings"

quietLog()

const JOBS = 2000

test("two loops on one database run every job once, and both have their share", async () => {
  await using it = await testStore()
  const second = await openStore({ ...settings(), database_url: it.database_url })
  const runs = new Map<number, number>()
  const shares = [0, 0]
  const done = Promise.withResolvers<void>()
  const at = (node: 0 | 1) => ({
    async run({ bell }: { bell: number }) {
      runs.set(bell, (runs.get(bell) ?? 0) + 1)
      shares[node] = (shares[node] ?? 0) + 1
      if (runs.size === JOBS) done.resolve()
      return {}
    },
  })
  for (let first = 0; first < JOBS; first += 500) await enqueueRings(it.store, 500, {}, first)

  const loops = [await running(it.store, at(0)), await running(second, at(1))]
  await done.promise
  for (const loop of loops) await loop.stop(20_000)
  expectNoneTwice(runs)
  expect(runs.size).toBe(JOBS)
  expect(Math.min(...shares)).toBeGreaterThan(0)
  expect(await it.store.read.select().from(jobs)).toEqual([])
  await second.close()
})
