import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { events } from "../../src/events/tables"
import { jobs } from "../../src/jobs/tables"
import { READY } from "../../src/jobs/work-item"
import { releaseHeld } from "../../src/webhooks/held"
import { activate, disable } from "../../src/webhooks/status"
import { deliveries } from "../../src/webhooks/tables"
import { receiver } from "../fakes/receiver"
import { type TestHooks, testHooks, until } from "../harness/hooks"

const down = () => new Response("no", { status: 500 })
const up = () => new Response("yes")

/** So many events, each of whose first attempts is over before the next begins. */
async function attemptEach(hooks: TestHooks, webhook_id: string, count: number) {
  for (let number = 0; number < count; number++) {
    const [event_id] = await hooks.emit(1)
    await until(async () => {
      const rows = await hooks.deliveries(webhook_id)
      const row = rows.find((one) => one.event_id === event_id)
      return row !== undefined && (row.attempts > 0 || row.status === "held")
    })
  }
}

const disabledEvents = ({ store }: TestHooks) =>
  store.read.select().from(events).where(eq(events.type, "webhook.disabled"))

describe("the breaker", () => {
  test("opens at exactly the tenth failed attempt in a row", async () => {
    await using hooks = await testHooks()
    using fake = receiver(down)
    const { id } = await hooks.endpoint({ url: fake.url })
    await hooks.deliver()
    await attemptEach(hooks, id, 9)
    expect(await hooks.webhook(id)).toMatchObject({ status: "active", consecutive_failures: 9 })
    expect(await disabledEvents(hooks)).toEqual([])
    await attemptEach(hooks, id, 1)
    expect(await hooks.webhook(id)).toMatchObject({
      status: "disabled",
      disabled_reason: "circuit_breaker",
      consecutive_failures: 10,
      disabled_at: expect.any(String),
    })
    await attemptEach(hooks, id, 1)
    expect(fake.received).toHaveLength(10)
    const rows = await hooks.deliveries(id)
    await until(async () => (await hooks.deliveries(id)).every(({ status }) => status === "held"))
    expect(rows).toHaveLength(11)
    expect(await disabledEvents(hooks)).toHaveLength(1)
  })

  test("counts anew after any success", async () => {
    await using hooks = await testHooks()
    using fake = receiver(down)
    const { id } = await hooks.endpoint({ url: fake.url })
    await hooks.deliver()
    await attemptEach(hooks, id, 9)
    fake.answer = up
    await attemptEach(hooks, id, 1)
    expect(await hooks.webhook(id)).toMatchObject({ status: "active", consecutive_failures: 0 })
    fake.answer = down
    await attemptEach(hooks, id, 9)
    expect(await hooks.webhook(id)).toMatchObject({ status: "active", consecutive_failures: 9 })
    await attemptEach(hooks, id, 1)
    expect((await hooks.webhook(id)).status).toBe("disabled")
  })

  test("goes on counting after a restart", async () => {
    await using hooks = await testHooks()
    using fake = receiver(down)
    const { id } = await hooks.endpoint({ url: fake.url })
    const before = await hooks.deliver()
    await attemptEach(hooks, id, 9)
    await before.stop(1000)
    await hooks.deliver()
    await attemptEach(hooks, id, 1)
    expect(await hooks.webhook(id)).toMatchObject({ status: "disabled", consecutive_failures: 10 })
  })

  test("opens once, and counts each attempt, where many fail side by side", async () => {
    await using hooks = await testHooks()
    using fake = receiver(down)
    const { id } = await hooks.endpoint({ url: fake.url })
    await hooks.emit(30)
    await hooks.deliver()
    await until(async () => (await hooks.deliveries(id)).every(({ status }) => status === "held"))
    const webhook = await hooks.webhook(id)
    expect(webhook).toMatchObject({ status: "disabled", disabled_reason: "circuit_breaker" })
    expect(webhook.consecutive_failures).toBe(fake.received.length)
    expect(await disabledEvents(hooks)).toMatchObject([{ data: { consecutive_failures: 10 } }])
  })

  test("does not count a failure that a later attempt's success came before", async () => {
    await using hooks = await testHooks()
    const slow = Promise.withResolvers<void>()
    using fake = receiver(async (_, number) => {
      if (number > 1) return up()
      await slow.promise
      return down()
    })
    const { id } = await hooks.endpoint({ url: fake.url })
    await hooks.deliver()
    const [first] = await hooks.emit(1)
    await fake.arrived(1)
    await attemptEach(hooks, id, 1)
    slow.resolve()
    await until(async () => (await hooks.deliveries(id)).every(({ attempts }) => attempts === 1))
    const failed = (await hooks.deliveries(id)).find(({ event_id }) => event_id === first)
    expect(failed).toMatchObject({ status: "failed", last_response_status: 500 })
    expect(await hooks.webhook(id)).toMatchObject({
      status: "active",
      consecutive_failures: 0,
      last_failure_at: expect.any(String),
    })
    fake.answer = down
    await attemptEach(hooks, id, 1)
    expect((await hooks.webhook(id)).consecutive_failures).toBe(1)
  })

  test("counts a failure that began after the last success, however long it took", async () => {
    await using hooks = await testHooks({ "webhooks.timeout": 300 })
    using fake = receiver((_, number) => (number > 1 ? new Promise(() => {}) : up()))
    const { id } = await hooks.endpoint({ url: fake.url })
    await hooks.deliver()
    await attemptEach(hooks, id, 2)
    expect(await hooks.webhook(id)).toMatchObject({ status: "active", consecutive_failures: 1 })
    const [, hung] = await hooks.deliveries(id)
    expect(hung).toMatchObject({ status: "failed", last_error: "timeout" })
  })

  test("tells the other endpoints, never the one itself, and the admins at 5, 8 and 10", async () => {
    await using hooks = await testHooks()
    using fake = receiver(down)
    using other = receiver()
    const { id, url } = await hooks.endpoint({ url: fake.url })
    await hooks.endpoint({ url: other.url, events: ["webhook.*"] })
    await hooks.deliver()
    await attemptEach(hooks, id, 10)
    await other.arrived(1)
    expect(JSON.parse(other.received[0]?.body ?? "")).toMatchObject({
      type: "webhook.disabled",
      data: { webhook_id: id, url, reason: "circuit_breaker", consecutive_failures: 10 },
    })
    const own = await hooks.deliveries(id)
    expect(own.map(({ event_type }) => event_type)).not.toContain("webhook.disabled")
    const planned = await hooks.store.read
      .select()
      .from(jobs)
      .where(eq(jobs.name, "webhook.warning"))
    const warnings = planned.map(({ payload }) => payload as { failures: number; reason: unknown })
    const told = warnings.map(({ failures, reason }) => [failures, reason])
    expect(told.sort()).toEqual([
      [10, "circuit_breaker"],
      [5, null],
      [8, null],
    ])
  })

  test("does not count what was asked for by hand, which goes out while disabled, too", async () => {
    await using hooks = await testHooks()
    using fake = receiver(down)
    const { id } = await hooks.endpoint({ url: fake.url })
    await hooks.deliver()
    await attemptEach(hooks, id, 9)
    await again()
    expect(await hooks.webhook(id)).toMatchObject({ status: "active", consecutive_failures: 9 })
    const webhook = await hooks.webhook(id)
    await hooks.store.tx((tx) => disable(tx, webhook, "paused"))
    await again()
    expect(await hooks.webhook(id)).toMatchObject({
      status: "disabled",
      disabled_reason: "paused",
      consecutive_failures: 9,
    })
    fake.answer = up
    await again()
    expect((await hooks.webhook(id)).consecutive_failures).toBe(0)

    async function again() {
      const [row] = await hooks.deliveries(id)
      const by_hand = { by_hand: true, status: "pending" as const }
      const due = { ...by_hand, state: READY, run_at: new Date().toISOString() }
      const which = eq(deliveries.id, row?.id ?? "")
      await hooks.store.tx((tx) => tx.update(deliveries).set(due).where(which))
      await until(
        async () => (await hooks.deliveries(id))[0]?.attempts === (row?.attempts ?? 0) + 1,
      )
    }
  })

  test("a 410 disables at once, and what waits is held", async () => {
    await using hooks = await testHooks()
    using fake = receiver(() => new Response(null, { status: 410 }))
    const { id } = await hooks.endpoint({ url: fake.url })
    await hooks.deliver()
    await attemptEach(hooks, id, 1)
    expect(await hooks.webhook(id)).toMatchObject({ status: "disabled", disabled_reason: "gone" })
    expect(await hooks.deliveries(id)).toMatchObject([{ status: "held", last_error: "gone" }])
    expect(await disabledEvents(hooks)).toMatchObject([{ data: { reason: "gone" } }])
  })
})

describe("what was held", () => {
  test("is delivered exactly once when it is released, with what happened meanwhile", async () => {
    await using hooks = await testHooks()
    using fake = receiver(down)
    const { id } = await hooks.endpoint({ url: fake.url })
    await hooks.deliver()
    await attemptEach(hooks, id, 10)
    await hooks.emit(25)
    await until(async () => (await hooks.deliveries(id)).every(({ status }) => status === "held"))
    const before = fake.received.length
    fake.answer = up
    await hooks.store.tx((tx) => activate(tx, { id }))
    const fresh = await hooks.emit(1)
    const released = async () => hooks.store.tx((tx) => releaseHeld(tx, { id }, undefined, 20))
    const parts = await Promise.all([released(), released(), released()])
    expect(parts.reduce((sum, part) => sum + part, 0)).toBe(35)
    await until(async () => (await hooks.deliveries(id)).every((row) => row.status === "success"))
    const ids = fake.received.slice(before).map((one) => one.id)
    expect(ids).toHaveLength(36)
    expect(new Set(ids).size).toBe(36)
    expect(ids).toContain(fresh[0] ?? "")
    expect(await hooks.webhook(id)).toMatchObject({ status: "active", consecutive_failures: 0 })
  })

  test("stays held when the endpoint is enabled without a replay", async () => {
    await using hooks = await testHooks()
    using fake = receiver()
    const endpoint = await hooks.endpoint({ url: fake.url })
    await hooks.store.tx((tx) => disable(tx, endpoint, "paused"))
    await hooks.emit(3)
    await hooks.store.tx((tx) => activate(tx, endpoint))
    await hooks.deliver()
    const [fresh] = await hooks.emit(1)
    await fake.arrived(1)
    expect(fake.received.map(({ id }) => id)).toEqual([fresh ?? ""])
    const rows = await hooks.deliveries(endpoint.id)
    expect(rows.map(({ status }) => status).slice(0, 3)).toEqual(["held", "held", "held"])
  })
})
