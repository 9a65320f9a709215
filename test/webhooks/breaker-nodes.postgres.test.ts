import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { settings } from "../../src/core/config"
import { events } from "../../src/events/tables"
import { openStore } from "../../src/store/open"
import { releaseHeld } from "../../src/webhooks/held"
import { activate } from "../../src/webhooks/status"
import { receiver } from "../fakes/receiver"
import { testHooks, until } from "../harness/hooks"

/** A second node on the same database. */
async function node({ folder, database_url }: { folder: string; database_url: string | null }) {
  return openStore({ ...settings(), data_dir: folder, database_url })
}

test("the failures that two nodes see count together, and the breaker opens once", async () => {
  await using hooks = await testHooks()
  using fake = receiver(() => new Response(null, { status: 500 }))
  const { id } = await hooks.endpoint({ url: fake.url })
  const other = await node(hooks)
  const loops = [await hooks.deliver(), await hooks.deliver(other)]
  await hooks.emit(60)
  for (const loop of loops) loop.wake()
  await until(async () => (await hooks.deliveries(id)).every(({ status }) => status === "held"))
  const webhook = await hooks.webhook(id)
  expect(webhook).toMatchObject({ status: "disabled", disabled_reason: "circuit_breaker" })
  expect(webhook.consecutive_failures).toBe(fake.received.length)
  const { store } = hooks
  const told = await store.read.select().from(events).where(eq(events.type, "webhook.disabled"))
  expect(told).toMatchObject([{ data: { consecutive_failures: 10 } }])

  fake.answer = () => new Response("up again")
  const before = fake.received.length
  await store.tx((tx) => activate(tx, { id }))
  const free = (on: typeof store) => on.tx((tx) => releaseHeld(tx, { id }, {}, 100))
  const released = await Promise.all([free(store), free(other), free(store)])
  expect(released.reduce((sum, part) => sum + part, 0)).toBe(60)
  for (const loop of loops) loop.wake()
  await until(async () => (await hooks.deliveries(id)).every((row) => row.status === "success"))
  const ids = fake.received.slice(before).map((one) => one.id)
  expect(ids).toHaveLength(60)
  expect(new Set(ids).size).toBe(60)
  for (const loop of loops) await loop.stop(1000)
  await other.close()
})

test("two nodes share the work, and none of it is done twice", async () => {
  await using hooks = await testHooks()
  using fake = receiver()
  const ids: string[] = []
  for (let number = 0; number < 8; number++) {
    ids.push((await hooks.endpoint({ url: fake.url, events: ["email.*"] })).id)
  }
  const other = await node(hooks)
  const loops = [await hooks.deliver(), await hooks.deliver(other)]
  for (let round = 0; round < 10; round++) {
    await hooks.emit(10)
    for (const loop of loops) loop.wake()
  }
  await until(async () => fake.received.length >= 800)
  for (const id of ids) {
    await until(async () => (await hooks.deliveries(id)).every((row) => row.status === "success"))
  }
  expect(fake.received).toHaveLength(800)
  for (const loop of loops) await loop.stop(1000)
  await other.close()
})
