import { expect, test } from "bun:test"
import { isoFrom, millis } from "../../src/core/time"
import { BOUNDS, countAttempts, purgeWebhookHours } from "../../src/webhooks/hours"
import { webhookHours } from "../../src/webhooks/tables"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { endpoint } from "./endpoints"

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
