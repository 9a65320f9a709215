import { describe, expect, test } from "bun:test"
import { openWorkers } from "../../src/core/workers"
import { DeferredError } from "../../src/jobs/work-item"
import {
  ConnectionThrottle,
  DeliveryTable,
  RunningAttempts,
} from "../../src/webhooks/delivery-work"
import { testHooks, until } from "../harness/hooks"
import { claimDeliveries } from "./claiming"

describe("an attempt that failed", () => {
  test("is outdone by a success that began later, and by no other", () => {
    const attempts = new RunningAttempts()
    const [first, second, third] = [1, 2, 3].map(() => attempts.begin("one"))
    const elsewhere = attempts.begin("other")
    second?.succeeded()
    elsewhere.succeeded()
    expect(first?.isOutdone()).toBe(true)
    expect(second?.isOutdone()).toBe(false)
    expect(third?.isOutdone()).toBe(false)
  })

  test("is not outdone by a success from before it began", () => {
    const attempts = new RunningAttempts()
    const before = attempts.begin("one")
    before.succeeded()
    before.end()
    expect(attempts.begin("one").isOutdone()).toBe(false)
  })
})

test("the concurrency of an endpoint is freed once, by the success or at the end", () => {
  const attempts = new RunningAttempts()
  const one = attempts.begin("one")
  expect(attempts.busy.get("one")).toBe(1)
  one.free()
  expect(attempts.busy.get("one")).toBeUndefined()
  const other = attempts.begin("one")
  one.end()
  one.end()
  expect(attempts.busy.get("one")).toBe(1)
  other.end()
  expect(attempts.busy.get("one")).toBeUndefined()
})

test("a delivery whose body cannot be made now waits, and takes no share of its endpoint", async () => {
  await using hooks = await testHooks()
  const { id } = await hooks.endpoint({ url: "http://127.0.0.1:1/", transform: "{}" })
  await hooks.emit(1)
  const workers = openWorkers({ size: 1 })
  await workers.close()
  const table = new DeliveryTable({ ...hooks.parts, workers })
  const rows = await claimDeliveries(hooks.store, id, 1)
  table.onClaim(rows)
  const [row] = rows
  if (!row) throw new Error("nothing was claimed")
  expect(table.running.busy.get(id)).toBe(1)
  const failure = await table.run(row).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(DeferredError)
  expect(failure).toMatchObject({ seconds: 1 })
  expect(table.running.busy.size).toBe(0)
})

const AT_ONCE = 60

/** Begins as many as are given, and tells of those that may. */
function began(throttle: ConnectionThrottle, count: number) {
  const releases: (() => void)[] = []
  for (let number = 0; number < count; number++) {
    void throttle.acquire().then((release) => releases.push(release))
  }
  return releases
}

describe("the throttle of the requests", () => {
  test("lets one begin for each that ends, in the order in which they came", async () => {
    const throttle = new ConnectionThrottle(60_000)
    const first = began(throttle, AT_ONCE)
    const order: string[] = []
    for (const name of ["one", "other"]) void throttle.acquire().then(() => order.push(name))
    await Promise.resolve()
    await Promise.resolve()
    expect([first.length, order]).toEqual([AT_ONCE, []])
    first[0]?.()
    await until(() => order.length === 1)
    first[1]?.()
    await until(() => order.length === 2)
    expect(order).toEqual(["one", "other"])
    for (const release of first) release()
  })

  test("keeps nobody waiting for those that take long, however many they are", async () => {
    const throttle = new ConnectionThrottle()
    const releases = began(throttle, AT_ONCE * 5)
    await until(() => releases.length === AT_ONCE * 5)
    for (const release of releases) release()
    const again = began(throttle, AT_ONCE)
    await Promise.resolve()
    await Promise.resolve()
    expect(again).toHaveLength(AT_ONCE)
  })
})
