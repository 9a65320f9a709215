import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { LookAhead } from "../../src/jobs/in-flight"
import { jobs } from "../../src/jobs/tables"
import type { WorkRow } from "../../src/jobs/work-item"
import { testStore } from "../harness/store"

const rows = (...ids: string[]) => ids.map((id) => ({ id }) as WorkRow)
const idsOf = (found: WorkRow[]) => found.map(({ id }) => id)

describe("rows that are found ahead", () => {
  test("are given once, in their order, by partition", async () => {
    await using it = await testStore()
    const ahead = new LookAhead<WorkRow>(it.store.read, "jobs")
    ahead.keep("one", rows("a", "b", "c"), false, ahead.changes)
    ahead.keep("other", rows("d"), false, ahead.changes)
    expect(idsOf(ahead.remove("one", 2))).toEqual(["a", "b"])
    expect(idsOf(ahead.remove("one", 2))).toEqual(["c"])
    expect(idsOf(ahead.remove("one", 2))).toEqual([])
    expect(idsOf(ahead.remove("other", 2))).toEqual(["d"])
  })

  test("are twice as many with each look that found more", async () => {
    await using it = await testStore()
    const ahead = new LookAhead<WorkRow>(it.store.read, "jobs")
    const extras = [0, 1, 2, 3, 4].map(() => {
      ahead.keep("one", rows("a"), false, ahead.changes)
      return ahead.extraFor("one")
    })
    expect(extras).toEqual([8, 16, 32, 64, 128])
    ahead.remove("one", 10)
    ahead.keep("one", [], true, ahead.changes)
    expect(ahead.extraFor("one")).toBe(0)
  })

  test("are forgotten when the table changes, also during the look", async () => {
    await using it = await testStore()
    const { store } = it
    const ahead = new LookAhead<WorkRow>(store.read, "jobs")
    const before = ahead.changes
    ahead.keep("one", rows("a"), false, before)
    await store.tx((tx) => tx.delete(jobs).where(eq(jobs.name, "none")))
    await Bun.sleep(0) // what follows a commit runs after its promise
    expect(ahead.remove("one", 1)).toEqual([])
    ahead.keep("one", rows("a"), false, before)
    expect(ahead.remove("one", 1)).toEqual([])
  })
})
