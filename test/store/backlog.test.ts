import { expect, test } from "bun:test"
import type { Verdict } from "../../src/store/job-handler"
import { testStore } from "../harness/store"
import { emptied, enqueueRings, running } from "./rings"

const LONG_AGO = "2020-01-01T00:00:00.000Z"

/** How many of ten jobs, for which there are ten places, begin in each turn of the event loop. */
async function begunEachTurn(isAsked: boolean, run_at?: string): Promise<number[]> {
  await using it = await testStore()
  const turns: number[] = []
  const all = Promise.withResolvers<Verdict>()
  let turn = 0
  let counting = setImmediate(function next() {
    turn += 1
    counting = setImmediate(next)
  })
  await enqueueRings(it.store, 10, run_at === undefined ? {} : { run_at })
  await using _ = await running(
    it.store,
    {
      run() {
        turns.push(turn)
        if (turns.length === 10) all.resolve({})
        return all.promise
      },
    },
    { isAsked: () => isAsked },
  )
  await emptied(it.store)
  clearImmediate(counting)
  return [...Map.groupBy(turns, (one) => one).values()].map(({ length }) => length)
}

test("a backlog begins three at a time while somebody waits for an answer", async () => {
  const begun = await begunEachTurn(true, LONG_AGO)
  expect(Math.max(...begun)).toBe(3)
})

test("a backlog that nobody waits beside fills every place at once", async () => {
  expect(await begunEachTurn(false, LONG_AGO)).toEqual([10])
})

test("work that has just come waits for nobody", async () => {
  expect(await begunEachTurn(true)).toEqual([10])
})
