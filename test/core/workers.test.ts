import { afterEach, describe, expect, test } from "bun:test"
import { getPriority } from "node:os"
import { ApiError } from "../../src/core/errors"
import { recentLines } from "../../src/core/log"
import {
  batchesPerPool,
  openWorkers,
  WorkerBatches,
  type Workers,
  WorkerTimeout,
  workerEntry,
} from "../../src/core/workers"

const entry = new URL("./worker-fixture.ts", import.meta.url).href
const soon = { deadline_ms: 20_000 }

let workers: Workers | undefined
afterEach(() => workers?.close())

function open(size = 1): Workers {
  workers = openWorkers({ size, entry })
  return workers
}

function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  )
}

describe("a task", () => {
  test("is answered from a thread", async () => {
    const numbers = Array.from({ length: 50 }, (_, number) => number)
    const opened = open(2)
    const results = numbers.map((value) => opened.run<number>("double", { value }, soon))
    expect(await Promise.all(results)).toEqual(numbers.map((value) => value * 2))
  })

  test("takes and gives bytes, and what was given in stays usable", async () => {
    const input = new Uint8Array(1000)
    expect(await open().run<number>("length", input, soon)).toBe(1000)
    expect(input.byteLength).toBe(1000)
    const { raw, small } = await open().run<{ raw: Uint8Array; small: Uint8Array }>(
      "bytes",
      5,
      soon,
    )
    expect([...raw]).toEqual([7, 7, 7, 7, 7])
    expect(Buffer.from(small).toString()).toBe("abc")
  })

  test.skipIf(process.platform !== "linux")(
    "runs in a thread that gives way, and the process does not",
    async () => {
      const before = getPriority()
      workers = openWorkers({ size: 1, entry, niceness: before + 3 })
      expect(await workers.run<number>("niceness", null, soon)).toBe(before + 3)
      expect(getPriority()).toBe(before)
    },
  )

  test("prints into the log what a library would print", async () => {
    expect(await open().run<string>("chatter", null, soon)).toBe("done")
    const said = recentLines().filter((line) => line.includes("a library of a thread"))
    expect(said.map((line) => JSON.parse(line))).toMatchObject([
      { level: "warn", message: "a library of a thread says something", thread: "worker" },
    ])
  })

  test("that refuses keeps the code, the status and the details of its error", async () => {
    const refused = await failure(open().run("refuse", null, soon))
    expect(refused).toBeInstanceOf(ApiError)
    expect(refused).toMatchObject({ code: "template_render_failed", status: 422, message: "No." })
    expect(refused).toMatchObject({ details: { missing: ["name"] } })
    const moved = await failure(open().run("moved", null, soon))
    expect(moved).toMatchObject({ code: "otp_expired", status: 400 })
  })

  test("that breaks tells its name, message and code", async () => {
    const error = await failure(open().run("break", null, soon))
    expect(error).not.toBeInstanceOf(ApiError)
    expect(error).toMatchObject({ name: "TypeError", message: "broken", code: "E_BROKEN" })
  })

  test("nobody knows, or that cannot be copied to or from the thread, is rejected", async () => {
    const opened = open()
    expect(await failure(opened.run("toString", null, soon))).toMatchObject({
      message: 'there is no task "toString"',
    })
    expect(await failure(opened.run("double", () => 1, soon))).toBeInstanceOf(Error)
    expect(await failure(opened.run("closure", null, soon))).toBeInstanceOf(Error)
    expect(await opened.run<number>("double", { value: 2 }, soon)).toBe(4)
  })
})

describe("the pool", () => {
  test("kills a task over its deadline and refills", async () => {
    const opened = open()
    const late = await failure(opened.run("spin", null, { deadline_ms: 50 }))
    expect(late).toBeInstanceOf(WorkerTimeout)
    expect(late).toMatchObject({ task: "spin", deadline_ms: 50 })
    expect(await opened.run<number>("double", { value: 3 }, soon)).toBe(6)
  })

  test("does not count waiting as working", async () => {
    const opened = open()
    const slow = failure(opened.run("spin", null, { deadline_ms: 1000 }))
    const quick = opened.run<number>("double", { value: 1 }, { deadline_ms: 900 })
    expect(await slow).toBeInstanceOf(WorkerTimeout)
    expect(await quick).toBe(2)
  })

  test.skipIf(process.platform !== "linux")(
    "gives a task that only works its processor time, also where its thread must wait for it",
    async () => {
      const opened = open()
      const only_works = { deadline_ms: 200, only_works: true }
      expect(await opened.run<string>("rest", 800, only_works)).toBe("rested")
      expect(await failure(opened.run("rest", 800, { deadline_ms: 200 }))).toBeInstanceOf(
        WorkerTimeout,
      )
      expect(await failure(opened.run("spin", null, only_works))).toBeInstanceOf(WorkerTimeout)
    },
  )

  test("does not count the loading of the code as working", async () => {
    const opened = open()
    expect(await opened.run<string>("load-slowly", null, { deadline_ms: 800 })).toBe("loaded")
    expect(await opened.run<string>("load-slowly", null, { deadline_ms: 800 })).toBe("loaded")
  })

  test("rejects a task whose code does not load, and goes on", async () => {
    const opened = open()
    const error = await failure(opened.run("load-nothing", null, soon))
    expect(error).toMatchObject({ message: "the code is broken" })
    expect(await opened.run<number>("double", { value: 5 }, soon)).toBe(10)
  })

  test("survives a thread that ends, and rejects only its task", async () => {
    const opened = open()
    const ended = failure(opened.run("exit", null, soon))
    const next = opened.run<number>("double", { value: 4 }, soon)
    expect(await ended).toMatchObject({ message: expect.stringContaining("died") })
    expect(await next).toBe(8)
  })

  test("refuses the task after a thousand that wait", async () => {
    const opened = open()
    const running = failure(opened.run("spin", null, soon))
    const waiting = Array.from({ length: 999 }, () => failure(opened.run("double", {}, soon)))
    const error = await failure(opened.run("double", { value: 1 }, soon))
    expect(error).toMatchObject({ code: "service_unavailable", status: 503 })
    await opened.close()
    for (const closed of await Promise.all([running, ...waiting])) {
      expect(closed).toMatchObject({ code: "service_unavailable" })
    }
  })

  test("rejects what waits when no thread can start", async () => {
    workers = openWorkers({ size: 2, entry: "file:///nowhere/worker.ts" })
    const error = await failure(workers.run("double", { value: 1 }, soon))
    expect(error).toMatchObject({ message: expect.stringContaining("cannot start") })
  })

  test("that is left goes on behind a close, which does not wait for it", async () => {
    // The close comes before or after the thread said that the code of its task is loaded.
    for (let time = 0; time < 20; time++) {
      const opened = open()
      const flag = new Int32Array(new SharedArrayBuffer(8))
      const left = failure(opened.run("hold", flag, { ...soon, left: true }))
      while (Atomics.load(flag, 1) !== 1) await Bun.sleep(1)
      await opened.close()
      expect(await left).toMatchObject({ code: "service_unavailable" })
      Atomics.store(flag, 0, 1)
      Atomics.notify(flag, 0)
      while (Atomics.load(flag, 1) !== 2) await Bun.sleep(1)
    }
  })

  test("that is whole ends before the pool is closed; what waits behind it does not", async () => {
    const opened = open()
    await opened.run("double", { value: 1 }, soon)
    const whole = opened.run<string>("rest", 20, { ...soon, whole: true })
    const behind = failure(opened.run("double", { value: 1 }, soon))
    await opened.close()
    expect(await Promise.race([whole, "not yet"])).toBe("rested")
    expect(await behind).toMatchObject({ code: "service_unavailable" })
  })

  test("takes nothing after it was closed", async () => {
    const opened = open()
    await opened.close()
    expect(await failure(opened.run("double", { value: 1 }, soon))).toBeInstanceOf(ApiError)
  })
})

test("the entry is beside core in the sources, and under the root in the binary", () => {
  expect(workerEntry()).toEndWith("/src/worker.ts")
  expect(workerEntry("file:///$bunfs/root/belfry")).toBe("file:///$bunfs/root/src/worker.ts")
  expect(workerEntry("file:///B:/~BUN/root/belfry.exe")).toEndWith("/~BUN/root/src/worker.ts")
})

/** A pool that tells how many inputs each task had. */
function counted(): { workers: Workers; sizes: number[] } {
  const opened = open(2)
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
