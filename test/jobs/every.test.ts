import { expect, test } from "bun:test"
import { settings } from "../../src/core/config"
import { sleep } from "../../src/core/time"
import { type EveryRow, isOurs, keepRunning } from "../../src/jobs/every"
import { openStore } from "../../src/store/open"
import { movableClock } from "../harness/clock"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"

const clock = movableClock()
const lines = quietLog()

const row = (run: EveryRow["run"], every_ms = 10): EveryRow => ({
  ...{ name: "bells", every_ms, run },
  by: "node",
})

test("rounds come again and again, never two at once, and none after the end", async () => {
  await using it = await testStore()
  let [rounds, running, most] = [0, 0, 0]
  const stop = keepRunning(it.store, [
    row(async () => {
      rounds += 1
      most = Math.max(most, ++running)
      await sleep(25)
      running -= 1
    }),
  ])
  while (rounds < 3) await sleep(5)
  await stop()
  expect([most, running]).toEqual([1, 0])
  const before = rounds
  await sleep(50)
  expect(rounds).toBe(before)
})

test("a round that fails is logged, and the next one comes", async () => {
  await using it = await testStore()
  let rounds = 0
  const stop = keepRunning(it.store, [
    row(() => {
      rounds += 1
      throw new Error("no rope")
    }),
  ])
  while (rounds < 2) await sleep(5)
  await stop()
  const line = lines().findLast((text) => text.includes("recurring work failed"))
  expect(line).toContain('"work":"bells"')
  expect(line).toContain("no rope")
})

test("the end tells the round that runs, and waits for it", async () => {
  await using it = await testStore()
  const begun = Promise.withResolvers<void>()
  let is_over = false
  const stop = keepRunning(it.store, [
    row(async (signal) => {
      begun.resolve()
      await sleep(60_000, signal)
      is_over = true
    }),
  ])
  await begun.promise
  await stop()
  expect(is_over).toBe(true)
})

test("what is done once for all nodes is done by one of them in each period", async () => {
  clock.freeze()
  await using it = await testStore()
  if (it.store.isAlone)
    return expect(
      await isOurs(
        it.store,
        row(() => {}),
      ),
    ).toBe(true)
  const second = await openStore({ ...settings(), database_url: it.database_url })
  try {
    const hourly = row(() => {}, 3_600_000)
    const asked = async () => {
      const nodes = [it.store, second, it.store]
      return (await Promise.all(nodes.map((store) => isOurs(store, hourly)))).filter(Boolean).length
    }
    expect([await asked(), await asked()]).toEqual([1, 0])
    clock.advance({ seconds: 3600 })
    expect(await asked()).toBe(1)
    clock.advance({ seconds: -86_400 }) // a clock that is put right
    expect(await asked()).toBe(1)
  } finally {
    await second.close()
  }
})
