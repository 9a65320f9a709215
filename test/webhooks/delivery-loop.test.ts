import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { DEAD, LEASED, OVER, READY } from "../../src/jobs/work-item"
import { isInFlight } from "../../src/webhooks/delivery-rows"
import { deliveries } from "../../src/webhooks/tables"
import { hangs, receiver } from "../fakes/receiver"
import { movableClock } from "../harness/clock"
import { testHooks, until } from "../harness/hooks"
import { idFor } from "../harness/ids"
import { engine } from "../harness/store"
import { claimDeliveries } from "./claiming"

const clock = movableClock()

describe("the delivery loop", () => {
  test("delivers each event to each endpoint that asked for it, once", async () => {
    await using hooks = await testHooks()
    using one = receiver()
    using other = receiver()
    const all = await hooks.endpoint({ url: one.url })
    await hooks.endpoint({ url: other.url, events: ["email.bounced", "user.*"] })
    await hooks.deliver()
    const delivered = await hooks.emit(3)
    const bounced = await hooks.emit(2, { type: "email.bounced" })
    const created = await hooks.emit(1, { type: "user.created" })
    await Promise.all([one.arrived(6), other.arrived(3)])
    const every = [...delivered, ...bounced, ...created]
    expect(one.received.map(({ id }) => id).sort()).toEqual(every.sort())
    expect(other.received.map(({ id }) => id).sort()).toEqual([...bounced, ...created].sort())
    await until(async () => (await statuses(all.id)).every((status) => status === "success"))

    async function statuses(id: string) {
      return (await hooks.deliveries(id)).map(({ status }) => status)
    }
  })

  test("delivers nothing of other projects, of a failed transaction, or that a filter excludes", async () => {
    await using hooks = await testHooks()
    using fake = receiver()
    const filter = { field: "data.number", op: "eq", value: 2 }
    const { id } = await hooks.endpoint({ url: fake.url, filter })
    await hooks.endpoint({ url: fake.url, project_id: idFor("another") })
    const broken = hooks.store.tx(async (tx) => {
      await tx.update(deliveries).set({ attempts: 0 }).where(eq(deliveries.id, ""))
      throw new Error("on purpose")
    })
    await broken.catch(() => {})
    const ids = await hooks.emit(5)
    await hooks.deliver()
    await fake.arrived(1)
    expect((await hooks.deliveries(id)).map(({ event_id }) => event_id)).toEqual([ids[2] ?? ""])
  })

  test("repeats the identical bytes under a fresh timestamp, on the endpoint's schedule", async () => {
    await using hooks = await testHooks()
    using fake = receiver((_, number) => new Response(null, { status: number < 4 ? 500 : 200 }))
    const retry_policy = { max_attempts: 10, intervals: [100, 1000] }
    const { id } = await hooks.endpoint({ url: fake.url, retry_policy })
    await hooks.emit(1)
    const loop = await hooks.deliver()
    for (const [attempt, wait] of [100, 1000, 1000].entries()) {
      await settled(attempt + 1)
      const [row] = await hooks.deliveries(id)
      const last = Date.parse(row?.last_attempted_at ?? "")
      const planned = (Date.parse(row?.run_at ?? "") - last) / 1000
      expect(row?.status).toBe("failed")
      expect(planned).toBeGreaterThanOrEqual(wait * 0.9)
      expect(planned).toBeLessThan(wait * 1.1 + 20) // the attempt's own length comes on top
      clock.advance({ seconds: wait * 1.1 + 20 })
      loop.wake()
    }
    await settled(4)
    const [row] = await hooks.deliveries(id)
    expect(row).toMatchObject({ status: "success", attempts: 4, state: OVER })
    expect(row?.attempt_log.map((one) => [one.attempt, one.response_status])).toEqual([
      [1, 500],
      [2, 500],
      [3, 500],
      [4, 200],
    ])
    expect(new Set(fake.received.map(({ body }) => body)).size).toBe(1)
    expect(new Set(fake.received.map((one) => one.id)).size).toBe(1)
    expect(new Set(fake.received.map(({ headers }) => headers["webhook-timestamp"])).size).toBe(4)

    function settled(attempts: number) {
      return until(async () => (await hooks.deliveries(id))[0]?.attempts === attempts)
    }
  })

  test("waits longer where a 429 or a 503 asks for it, but no longer than a day", async () => {
    const asked: [number, string, number][] = [
      [429, "5000", 5000],
      [503, "1", 100],
      [503, "999999999", 86_400],
      [500, "5000", 100],
    ]
    for (const [status, value, seconds] of asked) {
      await using hooks = await testHooks()
      const headers = { "retry-after": value }
      using fake = receiver(() => new Response(null, { status, headers }))
      const retry_policy = { max_attempts: 3, intervals: [100] }
      const { id } = await hooks.endpoint({ url: fake.url, retry_policy })
      await hooks.emit(1)
      await hooks.deliver()
      await until(async () => (await hooks.deliveries(id))[0]?.attempts === 1)
      const [row] = await hooks.deliveries(id)
      const last = Date.parse(row?.last_attempted_at ?? "")
      const planned = (Date.parse(row?.run_at ?? "") - last) / 1000
      expect(planned).toBeGreaterThanOrEqual(seconds * 0.9)
      expect(planned).toBeLessThan(seconds * 1.1 + 20)
    }
  })

  test("ends a delivery whose attempts are used up", async () => {
    await using hooks = await testHooks()
    using fake = receiver(() => new Response(null, { status: 500 }))
    const retry_policy = { max_attempts: 1, intervals: [1] }
    const { id } = await hooks.endpoint({ url: fake.url, retry_policy })
    await hooks.emit(1)
    await hooks.deliver()
    await until(async () => (await hooks.deliveries(id))[0]?.status === "exhausted")
    const [row] = await hooks.deliveries(id)
    expect(row).toMatchObject({ attempts: 1, state: DEAD, last_error: "http_status" })
  })

  test("an endpoint that hangs keeps nobody waiting", async () => {
    await using hooks = await testHooks({ "webhooks.concurrency": 12 })
    using hanging = receiver(hangs)
    using fake = receiver()
    // It was first, and there is more for it than there are slots.
    const stuck = await hooks.endpoint({ url: hanging.url, events: ["user.*"] })
    await hooks.emit(40, { type: "user.created" })
    await hooks.deliver()
    await hanging.arrived(7)
    const others = await Promise.all(
      Array.from({ length: 8 }, () => hooks.endpoint({ url: fake.url, events: ["email.*"] })),
    )
    await hooks.emit(10)
    await fake.arrived(others.length * 10)
    expect(hanging.received.length).toBeLessThan(12)
    const left = (await hooks.deliveries(stuck.id)).map(({ status }) => status)
    expect(new Set(left)).toEqual(new Set(["pending"]))
  })

  test("hands out no more slots in a second than the endpoint's rate", async () => {
    await using hooks = await testHooks()
    const { id } = await hooks.endpoint({ url: "http://127.0.0.1:1/", rate_limit: 20 })
    await hooks.emit(5)
    const claim = async () => (await claimDeliveries(hooks.store, id, 10)).length
    clock.freeze()
    expect([await claim(), await claim()]).toEqual([2, 0])
    clock.advance({ seconds: 0.099 })
    expect(await claim()).toBe(0)
    clock.advance({ seconds: 0.001 })
    expect([await claim(), await claim()]).toEqual([2, 0])
  })

  test("gives back at its stop what it could not end, and no attempt is counted", async () => {
    await using hooks = await testHooks()
    using fake = receiver(hangs)
    const { id } = await hooks.endpoint({ url: fake.url })
    await hooks.emit(3)
    const loop = await hooks.deliver()
    await fake.arrived(3)
    const { read } = hooks.store
    expect((await hooks.deliveries(id)).every((row) => isInFlight(read, row))).toBe(true)
    await loop.stop(1)
    for (const row of await hooks.deliveries(id)) {
      expect(row).toMatchObject({ status: "pending", owner: null, attempts: 0 })
    }
    fake.answer = () => new Response("at last")
    await hooks.deliver()
    await until(async () => (await hooks.deliveries(id)).every((row) => row.status === "success"))
  })

  test("makes an attempt again whose owner died, once its lease is over", async () => {
    await using hooks = await testHooks()
    using fake = receiver()
    const { id } = await hooks.endpoint({ url: fake.url })
    await hooks.emit(1)
    const lease_until = new Date(Date.now() + 50_000).toISOString()
    const dead = { state: LEASED, owner: "dead", lease_until }
    const loop = await hooks.deliver() // before: a start frees all leases where it is alone
    await fake.arrived(1)
    await until(async () => (await hooks.deliveries(id))[0]?.status === "success")
    await hooks.store.tx((tx) => tx.update(deliveries).set({ ...dead, status: "pending" }))
    loop.wake()
    await hooks.emit(1)
    await fake.arrived(2)
    expect((await hooks.deliveries(id))[0]?.owner).toBe("dead")
    clock.advance({ seconds: 60 })
    if (engine === "sqlite") {
      await loop.stop(0) // nobody else lives there: the next start frees all leases
      await hooks.deliver()
    }
    loop.wake()
    await fake.arrived(3)
    expect(fake.received[2]?.id).toBe(fake.received[0]?.id ?? "")
  })

  test("ends what is left of a deleted endpoint", async () => {
    await using hooks = await testHooks()
    const { project_id } = hooks
    await hooks.store.tx((tx) =>
      tx.insert(deliveries).values({
        id: idFor("left"),
        project_id,
        webhook_id: idFor("gone"),
        event_id: `evt_${idFor("x")}`,
        event_type: "email.sent",
        trigger: "event",
        status: "pending",
        state: READY,
        run_at: new Date(Date.now() + 60_000).toISOString(),
        attempt: 0,
        attempts: 0,
        max_attempts: 3,
        by_hand: false,
        attempt_log: [],
        created_at: new Date().toISOString(),
      }),
    )
    await hooks.deliver()
    await until(async () => {
      const [row] = await hooks.deliveries(idFor("gone"))
      return row?.status === "exhausted"
    })
  })
})
