import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { now, secondsFromNow } from "../../src/core/time"
import { DEAD, HELD, LEASED, OVER } from "../../src/jobs/work-item"
import { countDeliveries, WEBHOOKS } from "../../src/webhooks/delivery-rows"
import { deliveries } from "../../src/webhooks/tables"
import { hangs, receiver } from "../fakes/receiver"
import { testHooks, until } from "../harness/hooks"
import { testPauses } from "../harness/pauses"

test("an operator pauses all webhooks: what runs ends, nothing begins, and all goes on after it", async () => {
  await using hooks = await testHooks()
  using fake = receiver()
  const control = testPauses(hooks.store, ["email", WEBHOOKS], [countDeliveries])
  const loop = await hooks.deliver(undefined, () => control.holdOf(WEBHOOKS) !== undefined)
  const { id } = await hooks.endpoint({ url: fake.url })
  await hooks.emit(1)
  await fake.arrived(1)

  expect(await control.pause(WEBHOOKS, null)).toMatchObject({ queue: WEBHOOKS, paused: true })
  await hooks.emit(3)
  const looked = loop.progressed_at
  await until(() => loop.progressed_at > looked + 1000)
  expect(fake.received).toHaveLength(1)
  // On a busy machine the counts of the pause itself may be answered for a moment longer.
  const line = async () => (await control.list())[1]
  await until(async () => (await line())?.depth === 3)
  expect(await line()).toMatchObject({ queue: WEBHOOKS, depth: 3, running: 0, paused: true })
  const rows = await hooks.deliveries(id)
  expect(rows.slice(1).map(({ status, attempts }) => [status, attempts])).toEqual(
    Array.from({ length: 3 }, () => ["pending", 0]),
  )

  await control.resume(WEBHOOKS)
  await fake.arrived(4)
})

test("its line counts what waits, is held, runs, and was given up today", async () => {
  await using hooks = await testHooks()
  using fake = receiver(hangs)
  const { id } = await hooks.endpoint({ url: fake.url })
  await hooks.emit(8)
  const rows = await hooks.deliveries(id)
  const become = (at: number, change: Partial<typeof deliveries.$inferInsert>) =>
    hooks.store.tx((tx) =>
      tx
        .update(deliveries)
        .set(change)
        .where(eq(deliveries.id, rows[at]?.id ?? "")),
    )
  await become(0, { status: "held", state: HELD, created_at: secondsFromNow(-3600) })
  await become(1, { state: LEASED, owner: "somebody" })
  await become(2, { status: "exhausted", state: DEAD, run_at: now() })
  await become(3, { status: "exhausted", state: DEAD, run_at: secondsFromNow(-2 * 86_400) })
  await become(4, { status: "success", state: OVER, run_at: now() })
  const line = (await countDeliveries(hooks.store.read)).get(WEBHOOKS)
  expect(line).toMatchObject({ depth: 4, running: 1, failed_24h: 1 })
  expect(line?.oldest_seconds).toBeWithin(3600, 3700)
})
