import { afterAll, expect, spyOn, test } from "bun:test"
import { jobs } from "../../src/jobs/tables"
import type { WorkResult } from "../../src/jobs/work-item"
import type { Store } from "../../src/store/store"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { happened, types } from "../store/facts"
import * as queue from "./by-hand"
import { enqueueRings, running } from "./rings"

quietLog()

/** The pause between two tries at writing a result, which nobody wants to sit through. */
const PAUSE_MS = 500
const real = globalThis.setTimeout
const hasty = (work: () => void, ms?: number) => real(work, ms === PAUSE_MS ? 0 : ms)
const timers = spyOn(globalThis, "setTimeout").mockImplementation(hasty as typeof setTimeout)
afterAll(() => timers.mockRestore())

async function dead(store: Store) {
  for (;;) {
    const rows = await store.read.select().from(jobs)
    if (rows.every(({ state }) => state === queue.DEAD)) return rows
    await Bun.sleep(2)
  }
}

test("a result that storage refused for a while is written once it takes it, without a second run", async () => {
  await using it = await testStore()
  const { store } = it
  let [runs, writes] = [0, 0]
  const written = Promise.withResolvers<void>()
  await enqueueRings(store, 1)

  await using _ = await running(store, {
    async run() {
      runs += 1
      return {
        async done(tx) {
          await happened(tx, "rung")
          if (++writes < 30) throw Object.assign(new Error("full"), { code: "SQLITE_FULL" })
          tx.afterCommit(written.resolve)
        },
      }
    },
  })
  await written.promise
  expect([runs, writes]).toEqual([1, 30])
  expect(await types(store.read)).toEqual(["rung"])
  expect(await store.read.select().from(jobs)).toEqual([])
})

test("last words that fail once are written with the burial, or neither", async () => {
  await using it = await testStore()
  let words = 0
  await enqueueRings(it.store, 1)

  await using _ = await running(it.store, {
    run: async () => ({ retry: "torn", schedule: () => undefined }),
    async onDead(tx) {
      await happened(tx, "bell.broken")
      if (++words < 3) throw new Error("not now")
    },
  })
  expect(await dead(it.store)).toMatchObject([{ last_error: "torn" }])
  expect(words).toBe(3)
  expect(await types(it.store.read)).toEqual(["bell.broken"])
})

test("a result that breaks a rule does not hold its slot for ever: the job is buried", async () => {
  await using it = await testStore()
  let runs = 0
  await enqueueRings(it.store, 1)

  await using _ = await running(it.store, {
    async run(): Promise<WorkResult> {
      runs += 1
      return { done: () => Promise.reject(new Error("no such column")) }
    },
    onDead: (tx, _payload, reason) => happened(tx, reason),
  })
  const reason = "The result could not be recorded. The log has the reason."
  expect(await dead(it.store)).toMatchObject([{ last_error: reason, attempt: 1 }])
  expect(await types(it.store.read)).toEqual([reason])
  expect(runs).toBe(1)
})

test("the place that a job keeps until its end is on disk is given back once, also by a burial", async () => {
  await using it = await testStore()
  const states: number[] = []
  const given = Promise.withResolvers<void>()
  await enqueueRings(it.store, 1)

  await using _ = await running(it.store, {
    run: async () => ({
      done: () => Promise.reject(new Error("no such column")),
      async settled() {
        states.push(...(await it.store.read.select().from(jobs)).map(({ state }) => state))
        given.resolve()
      },
    }),
  })
  await given.promise
  expect(states).toEqual([queue.DEAD])
})

test("where even the last words break a rule the job is buried without them", async () => {
  await using it = await testStore()
  await enqueueRings(it.store, 1)

  await using _ = await running(it.store, {
    run: async () => ({ retry: "torn", schedule: () => undefined }),
    onDead: () => Promise.reject(new Error("no words")),
  })
  const [job] = await dead(it.store)
  expect(job?.last_error).toBe("The result could not be recorded. The log has the reason.")
})
