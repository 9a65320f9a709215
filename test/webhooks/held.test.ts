import { describe, expect, test } from "bun:test"
import { events } from "../../src/events/tables"
import { exhaustAll, releaseHeld } from "../../src/webhooks/held"
import { expireHeld } from "../../src/webhooks/retention"
import { disable } from "../../src/webhooks/status"
import { movableClock } from "../harness/clock"
import { type TestHooks, testHooks, until } from "../harness/hooks"

const clock = movableClock()
const URL = "http://127.0.0.1:1/"

async function held(hooks: TestHooks, count: number) {
  const endpoint = await hooks.endpoint({ url: URL })
  await hooks.store.tx((tx) => disable(tx, endpoint, "manual"))
  await hooks.emit(count)
  return endpoint
}

const statuses = async (hooks: TestHooks, id: string) =>
  Object.fromEntries(
    [...Map.groupBy(await hooks.deliveries(id), ({ status }) => status)].map(([status, rows]) => [
      status,
      rows.length,
    ]),
  )

describe("an endpoint that is disabled", () => {
  test("has everything put aside, however much is open", async () => {
    await using hooks = await testHooks()
    const endpoint = await hooks.endpoint({ url: URL })
    await hooks.emit(1300)
    await hooks.store.tx((tx) => disable(tx, endpoint, "paused"))
    const { held = 0 } = await statuses(hooks, endpoint.id)
    expect(held).toBeGreaterThan(0)
    await hooks.deliver()
    await until(async () => (await statuses(hooks, endpoint.id)).held === 1300)
  })

  test("is disabled once, and the second one to ask changes nothing", async () => {
    await using hooks = await testHooks()
    const endpoint = await hooks.endpoint({ url: URL })
    const both = await Promise.all([
      hooks.store.tx((tx) => disable(tx, endpoint, "paused")),
      hooks.store.tx((tx) => disable(tx, endpoint, "manual")),
    ])
    expect(both.filter(Boolean)).toHaveLength(1)
    expect(await hooks.store.read.select().from(events)).toHaveLength(1)
  })
})

describe("what is held", () => {
  test("is released by its ids, or the oldest first", async () => {
    await using hooks = await testHooks()
    const endpoint = await held(hooks, 4)
    clock.advance({ seconds: 100 })
    await hooks.emit(3)
    const late = (await hooks.deliveries(endpoint.id))
      .map(({ id }) => id)
      .sort()
      .slice(4)
    const free = (ids: string[] | undefined, limit = 100) =>
      hooks.store.tx((tx) => releaseHeld(tx, endpoint, ids, limit))
    expect(await free(late.slice(0, 1))).toBe(1)
    expect(await free(undefined, 4)).toBe(4)
    const left = (await hooks.deliveries(endpoint.id)).filter(({ status }) => status === "held")
    expect(left.map(({ id }) => id).sort()).toEqual(late.slice(1))
    expect(await free(undefined)).toBe(2)
    expect(await free(undefined)).toBe(0)
  })

  test("ends after seven days", async () => {
    await using hooks = await testHooks()
    const endpoint = await held(hooks, 700)
    clock.advance({ seconds: 6.9 * 86_400 })
    await hooks.emit(1)
    expect(await expireHeld(hooks.store)).toBe(0)
    clock.advance({ seconds: 0.2 * 86_400 })
    expect(await expireHeld(hooks.store)).toBe(700)
    expect(await statuses(hooks, endpoint.id)).toEqual({ exhausted: 700, held: 1 })
  })

  test("ends with its endpoint, some at a time", async () => {
    await using hooks = await testHooks()
    const endpoint = await held(hooks, 501)
    expect(await hooks.store.tx((tx) => exhaustAll(tx, endpoint))).toBe(500)
    expect(await hooks.store.tx((tx) => exhaustAll(tx, endpoint))).toBe(1)
    expect(await statuses(hooks, endpoint.id)).toEqual({ exhausted: 501 })
  })
})
