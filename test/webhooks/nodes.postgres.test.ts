import { expect, test } from "bun:test"
import { eq, sql } from "drizzle-orm"
import { settings } from "../../src/core/config"
import { newId } from "../../src/core/ids"
import { events } from "../../src/events/tables"
import { claimsOf } from "../../src/jobs/claims"
import { nodes } from "../../src/jobs/tables"
import { releaseSilent, showLife } from "../../src/jobs/work-nodes"
import { openStore } from "../../src/store/open"
import { deliveryRows } from "../../src/webhooks/delivery-rows"
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
  const free = (on: typeof store) => on.tx((tx) => releaseHeld(tx, { id }, undefined, 100))
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

test("what a silent node had claimed is delivered by another, and counts as no attempt", async () => {
  await using hooks = await testHooks()
  using fake = receiver()
  const { id } = await hooks.endpoint({ url: fake.url })
  await hooks.emit(5)
  const { store } = hooks
  const dead = newId()
  await showLife(store, dead)
  const lease = { owner: dead, lease_ms: 3_600_000, alone: false }
  const claims = claimsOf(store, { rows: deliveryRows }, lease)
  expect(await claims.claim({ partition: id, limit: 5 })).toHaveLength(5)
  await hooks.deliver()
  expect(await releaseSilent(store, [deliveryRows])).toBe(0)
  await store.tx((tx) => tx.update(nodes).set({ seen_at: sql`${nodes.seen_at} - 21000` }))
  expect(await releaseSilent(store, [deliveryRows])).toBe(5)
  await until(async () => (await hooks.deliveries(id)).every((row) => row.status === "success"))
  expect((await hooks.deliveries(id)).map(({ attempts }) => attempts)).toEqual([1, 1, 1, 1, 1])
  expect(fake.received).toHaveLength(5)
})
