import { afterEach, beforeEach, expect, mock, spyOn, test } from "bun:test"
import { isoFrom, millis } from "../../src/core/time"
import { movableClock } from "../harness/clock"
import { testStore } from "../harness/store"
import * as queue from "./by-hand"
import { allJobs, emptied, enqueueRings, type RunningLoop, running } from "./rings"

const clock = movableClock()

/** Milliseconds that pass from one turn of the event loop to the next. */
let tick = 0
let stopwatch = 0

beforeEach(() => {
  clock.freeze()
  tick = 0
  spyOn(performance, "now").mockImplementation(() => stopwatch)
})
afterEach(() => void mock.restore())

interface Backlog {
  isAsked: boolean
  late_ms: number
  jobs?: number
  places?: number
}

/** How many jobs begin in each turn of the event loop. Each ends as soon as it has begun. */
async function begunEachTurn({ isAsked, late_ms, jobs = 10, places = 10 }: Backlog) {
  await using it = await testStore()
  const turns: number[] = []
  let turn = 0
  let counting = setImmediate(function next() {
    turn += 1
    stopwatch += tick
    counting = setImmediate(next)
  })
  await enqueueRings(it.store, jobs, { run_at: isoFrom(millis() - late_ms) })
  const run = async () => {
    turns.push(turn)
    return {}
  }
  const options = { isAsked: () => isAsked, concurrency: places }
  await using _ = await running(it.store, { run }, options)
  await emptied(it.store)
  clearImmediate(counting)
  return [...Map.groupBy(turns, (one) => one).values()].map(({ length }) => length)
}

test("a backlog begins three at a time while somebody waits for an answer", async () => {
  const begun = await begunEachTurn({ isAsked: true, late_ms: 1001 })
  expect(Math.max(...begun)).toBe(3)
})

test("that holds for places that are free again within the turn, too", async () => {
  const begun = await begunEachTurn({ isAsked: true, late_ms: 1001, jobs: 60, places: 2 })
  expect(Math.max(...begun)).toBe(3)
})

test("of a turn that takes long more begin in the next, one for each millisecond", async () => {
  tick = 10
  const begun = await begunEachTurn({ isAsked: true, late_ms: 1001, jobs: 30, places: 30 })
  expect(Math.max(...begun)).toBe(10)
})

test("a backlog that nobody waits beside fills every place at once", async () => {
  expect(await begunEachTurn({ isAsked: false, late_ms: 1001 })).toEqual([10])
})

test("work that is due for no more than a second waits for nobody", async () => {
  expect(await begunEachTurn({ isAsked: true, late_ms: 1000 })).toEqual([10])
})

test("a loop that is stopped while it lets requests in begins nothing more", async () => {
  await using it = await testStore()
  let begun = 0
  let stopped: Promise<void> | undefined
  let loop: RunningLoop | undefined
  await enqueueRings(it.store, 10, { run_at: isoFrom(millis() - 1001) })
  const asked = Promise.withResolvers<void>()
  const run = async () => {
    begun += 1
    return {}
  }
  const isAsked = () => {
    stopped ??= loop?.stop(20_000)
    asked.resolve()
    return true
  }
  loop = await running(it.store, { run }, { isAsked })
  await asked.promise
  await stopped
  expect(begun).toBe(3)
  const left = await allJobs(it.store)
  expect(left).toHaveLength(7)
  expect(left).toEqual(left.map((job) => ({ ...job, state: queue.READY, attempt: 0, owner: null })))
})
