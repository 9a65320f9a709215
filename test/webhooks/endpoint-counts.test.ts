import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { isoFrom, millis } from "../../src/core/time"
import { MOST_OPEN } from "../../src/webhooks/delivery-picker"
import {
  BOUNDS,
  count,
  countAttempts,
  purgeWebhookHours,
  totalsOfOne,
} from "../../src/webhooks/endpoint-counts"
import { exhaustAll, releaseHeld } from "../../src/webhooks/held"
import { purgeDeliveries, removeOfEvents } from "../../src/webhooks/retention"
import { activate, disable } from "../../src/webhooks/status"
import { webhookHours, webhooks, webhookTotals } from "../../src/webhooks/tables"
import { receiver } from "../fakes/receiver"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { type TestHooks, testHooks, until } from "../harness/hooks"
import { sharedService } from "../harness/shared-service"
import { wrongTotals } from "../harness/wrong-totals"
import { endpoint } from "./endpoints"

const wrong = ({ store, project_id }: TestHooks) => wrongTotals(store.read, project_id)

describe("the totals of an endpoint", () => {
  test("are those of its rows, whatever became of them", async () => {
    await using hooks = await testHooks()
    const { store } = hooks
    let status = 200
    using fake = receiver(() => new Response("", { status }))
    const policy = { max_attempts: 1, intervals: [1] }
    const endpoint = await hooks.endpoint({ url: fake.url, retry_policy: policy })
    const total = () => totalsOfOne(store.read, endpoint.id)
    const events = await hooks.emit(5)
    expect(await total()).toEqual({ deliveries: 5, open: 5, held: 0 })
    await hooks.deliver()
    await until(async () => (await total()).open === 0)
    status = 500
    await hooks.emit(3)
    await until(async () => (await hooks.webhook(endpoint.id)).consecutive_failures === 3)
    await store.tx((tx) => disable(tx, endpoint, "manual"))
    await hooks.emit(700)
    await until(async () => (await total()).held === 700)
    expect(await wrong(hooks)).toEqual([])
    await store.tx((tx) => removeOfEvents(tx, events.slice(0, 2)))
    expect(await total()).toEqual({ deliveries: 706, open: 700, held: 700 })
    status = 200
    await store.tx(async (tx) => {
      await activate(tx, endpoint)
      await releaseHeld(tx, endpoint, undefined, 100)
    })
    await until(async () => (await total()).open === 600)
    expect(await store.tx((tx) => exhaustAll(tx, endpoint))).toBe(500)
    expect(await total()).toEqual({ deliveries: 706, open: 100, held: 100 })
    expect(await wrong(hooks)).toEqual([])
    const later = new Date(Date.now() + 60_000).toISOString()
    while ((await purgeDeliveries(store, endpoint.id, later)) > 0);
    expect(await total()).toEqual({ deliveries: 100, open: 100, held: 100 })
    expect(await wrong(hooks)).toEqual([])
  })
})

describe("an endpoint with too many open deliveries", () => {
  /** As if it had so many more than it has rows. */
  const pretend = ({ store, project_id }: TestHooks, webhook_id: string, open: number) =>
    store.tx((tx) => count(tx, [{ project_id, webhook_id }], { open }))

  const ended = async (hooks: TestHooks, id: string) =>
    (await hooks.deliveries(id)).filter(({ status }) => status === "exhausted")

  test("loses the oldest that are held", async () => {
    await using hooks = await testHooks()
    const endpoint = await hooks.endpoint({ url: "http://127.0.0.1:1/" })
    await hooks.store.tx((tx) => disable(tx, endpoint, "manual"))
    await pretend(hooks, endpoint.id, MOST_OPEN - 3)
    const first = await hooks.emit(3)
    await hooks.deliver()
    expect(await ended(hooks, endpoint.id)).toEqual([])
    await hooks.emit(2)
    await until(async () => (await ended(hooks, endpoint.id)).length === 2)
    const rows = await ended(hooks, endpoint.id)
    expect(rows.map(({ event_id }) => event_id).sort()).toEqual(first.slice(0, 2).sort())
    expect(rows[0]).toMatchObject({ last_error: "backlog_limit", attempts: 0 })
    const { open } = await totalsOfOne(hooks.store.read, endpoint.id)
    expect(open).toBe(MOST_OPEN)
  })

  test("loses the next ones that are due where none is held", async () => {
    await using hooks = await testHooks()
    const endpoint = await hooks.endpoint({ url: "http://127.0.0.1:1/", rate_limit: 1 })
    const [first] = await hooks.emit(1)
    await pretend(hooks, endpoint.id, MOST_OPEN)
    await hooks.deliver(undefined, () => true)
    await until(async () => (await ended(hooks, endpoint.id)).length === 1)
    expect((await ended(hooks, endpoint.id))[0]?.event_id).toBe(first ?? "")
  })
})

test("the totals of a deleted endpoint go with its last delivery", async () => {
  await using hooks = await testHooks()
  const { store } = hooks
  const { id } = await hooks.endpoint({ url: "http://127.0.0.1:1/" })
  await hooks.emit(3)
  await store.tx((tx) => tx.delete(webhooks).where(eq(webhooks.id, id)))
  await store.tx((tx) => exhaustAll(tx, { id }))
  const rows = () => store.read.select().from(webhookTotals).where(eq(webhookTotals.webhook_id, id))
  expect(await rows()).not.toEqual([])
  const later = new Date(Date.now() + 60_000).toISOString()
  while ((await purgeDeliveries(store, id, later)) > 0);
  expect(await rows()).toEqual([])
})

const service = await sharedService()
const { store } = service
const clock = movableClock()

const answered = (webhook_id: string, response_status: number | null, latency_ms: number) => ({
  webhook_id,
  outcome: { response_status, error: "timeout" as const, latency_ms },
})

test("how the attempts went, of the last day or week", async () => {
  const project = await service.project()
  const { id } = await endpoint(project)
  const path = `/v1/webhooks/${id}/stats`
  const none = { attempts: 0, success: 0, failed: 0, held: 0, p50_ms: null, p95_ms: null }
  expect((await project.get(path)).body.data).toEqual({ ...none, by_status: {} })

  await store.tx((tx) => countAttempts(tx, [answered(id, 204, 5000)]))
  clock.advance({ seconds: 3 * 86_400 })
  const good = Array.from({ length: 17 }, (_, at) => answered(id, 204, at + 1))
  const bad = [answered(id, 500, 40), answered(id, null, 30_000), answered(id, 299, 1)]
  await store.tx((tx) => countAttempts(tx, [...good, ...bad]))
  const day = (await project.get(path)).body.data
  const by_status = { "204": 17, "2xx": 1, "500": 1, timeout: 1 }
  const times = { p50_ms: 9, p95_ms: 43 }
  expect(day).toEqual({ attempts: 20, success: 18, failed: 2, held: 0, ...times, by_status })
  const week = (await project.get(`${path}?window=7d`)).body.data
  expect(week).toMatchObject({ attempts: 21, success: 19, by_status: { "204": 18 } })
  expect(refusal(await project.get(`${path}?window=1h`))).toEqual([422, "validation_error"])
})

test("a time is told to within a tenth", async () => {
  const project = await service.project()
  for (const ms of [3, 14, 137, 2600, 29_000]) {
    const { id } = await endpoint(project)
    await store.tx((tx) => countAttempts(tx, Array(9).fill(answered(id, 200, ms))))
    const { p50_ms } = (await project.get(`/v1/webhooks/${id}/stats`)).body.data
    expect(Math.abs(p50_ms - ms)).toBeLessThanOrEqual(Math.max(1, ms / 10))
  }
  expect(BOUNDS).toEqual([...BOUNDS].sort((a, b) => a - b))
})

test("hours that no window reaches are forgotten", async () => {
  const { id } = await endpoint(await service.project())
  await store.tx((tx) => countAttempts(tx, [answered(id, 200, 1)]))
  const left = async () =>
    (await store.read.select().from(webhookHours)).filter((row) => row.webhook_id === id)
  while ((await purgeWebhookHours(store)) > 0);
  expect(await left()).toHaveLength(2)
  clock.advance({ seconds: 8 * 86_400 })
  while ((await purgeWebhookHours(store)) > 0);
  expect([await left(), isoFrom(millis()) > "2026"]).toEqual([[], true])
})
