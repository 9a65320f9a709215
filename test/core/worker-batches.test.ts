import { afterEach, expect, test } from "bun:test"
import { batchesPerPool, WorkerBatches } from "../../src/core/worker-batches"
import { openWorkers, type Workers } from "../../src/core/workers"

const entry = new URL("./worker-fixture.ts", import.meta.url).href

let pool: Workers | undefined
afterEach(() => pool?.close())

/** A pool that tells how many inputs each task had. */
function counted(): { workers: Workers; sizes: number[] } {
  const opened = openWorkers({ size: 2, entry })
  pool = opened
  const sizes: number[] = []
  const run: Workers["run"] = (task, input, options) => {
    sizes.push((input as unknown[]).length)
    return opened.run(task, input, options)
  }
  return { workers: { run, close: () => opened.close() }, sizes }
}

const doubles = batchesPerPool<number, number>("double-all", 20_000)

test("inputs that come together share tasks, and each gets its own output", async () => {
  const { workers, sizes } = counted()
  const numbers = Array.from({ length: 100 }, (_, at) => at)
  const found = await Promise.all(numbers.map((one) => doubles(workers).add(one)))
  expect(found).toEqual(numbers.map((one) => 2 * one))
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(100)
  expect(Math.max(...sizes)).toBe(16)
})

test("one input does not wait for others", async () => {
  const { workers, sizes } = counted()
  expect(await doubles(workers).add(21)).toBe(42)
  expect(sizes).toEqual([1])
})

test("a task that fails fails for its inputs alone, and the next ones go on", async () => {
  const { workers } = counted()
  const failing = batchesPerPool<number, number>("break", 20_000)(workers)
  const tries = [1, 2, 3].map((one) => failing.add(one).catch((error: Error) => error.message))
  expect(await Promise.all(tries)).toEqual(["broken", "broken", "broken"])
  expect(await failing.add(4).catch((error: Error) => error.message)).toBe("broken")
  expect(await doubles(workers).add(2)).toBe(4)
})

test("a task of several inputs that failed is told as theirs together, where that is asked for", async () => {
  const { workers } = counted()
  const options = { most: 16, in_flight: 1, tells_shared_failures: true }
  const failing = new WorkerBatches<number, number>(workers, "break", 20_000, options)
  const nameOf = (input: number) => failing.add(input).catch((error: Error) => error.name)
  expect(await Promise.all([1, 2].map(nameOf))).toEqual(["SharedFailure", "SharedFailure"])
  expect(await nameOf(3)).toBe("TypeError")
})
