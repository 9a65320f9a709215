import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { isoFrom, millis } from "../../src/core/time"
import { deliveries } from "../../src/webhooks/tables"
import { complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { deliveriesOf, endpoint, happens, replayAll, settleAs } from "./endpoints"

const service = await sharedService()
const clock = movableClock()
const LONG_AGO = "2026-01-01T00:00:00Z"

const short = (list: { event_type: string; status: string; trigger: string }[]) =>
  list.map(({ event_type, status, trigger }) => `${event_type} ${status} ${trigger}`).sort()

/** Asks, and waits for the end of the work. */
async function done(project: TestProject, path: string, body: object) {
  const answer = await project.post(path, body)
  expect([answer.status, answer.body.error]).toEqual([201, undefined])
  await replayAll(service)
  return answer.body.data
}

describe("a bulk retry", () => {
  test("gives each that failed one more attempt, in the states and the span asked for", async () => {
    const project = await service.project()
    const { id } = await endpoint(project)
    await happens(project, "email.sent")
    clock.advance({ seconds: 30 })
    const since = isoFrom(millis())
    await happens(project, "email.bounced")
    await happens(project, "sms.sent")
    await settleAs(service, project, { status: "exhausted", attempts: 6 })
    clock.advance({ seconds: 30 })
    const path = `/v1/webhooks/${id}/deliveries/bulk-retry`
    const none = await done(project, path, { status: ["failed"] })
    expect(none).toMatchObject({ type: "webhook.bulk_retry", status: "queued", error: null })
    expect(none.progress).toEqual({ done: 0, total: 0, failed: 0 })
    const job = await done(project, path, { since, event_types: ["email.*"] })
    expect(job.progress.total).toBe(1)
    expect(short(await deliveriesOf(project, id))).toEqual([
      "email.bounced pending manual",
      "email.sent exhausted event",
      "sms.sent exhausted event",
    ])
    const [row] = await deliveriesOf(project, id, "?status=pending")
    expect(row).toMatchObject({ attempts: 6, max_attempts: 7 })
    await done(project, path, {})
    expect(await deliveriesOf(project, id, "?status=exhausted")).toEqual([])
  })

  test("goes through however many there are, each once", async () => {
    const project = await service.project()
    const { id } = await endpoint(project)
    for (let number = 0; number < 410; number++) await happens(project)
    await settleAs(service, project, { status: "exhausted", attempts: 6 })
    await done(project, `/v1/webhooks/${id}/deliveries/bulk-retry`, {})
    const ours = eq(deliveries.project_id, project.project_id)
    const rows = await service.store.read.select().from(deliveries).where(ours)
    expect(new Set(rows.map((row) => `${row.status} ${row.max_attempts}`))).toEqual(
      new Set(["pending 7"]),
    )
  })

  test("passes by however many others there are, and counts at its end", async () => {
    const project = await service.project()
    const { id } = await endpoint(project)
    await happens(project, "email.sent")
    const ours = eq(deliveries.project_id, project.project_id)
    const [other] = await service.store.read.select().from(deliveries).where(ours)
    if (!other) throw new Error("there is no delivery")
    const others = Array.from({ length: 1200 }, () => ({ ...other, id: newId() }))
    await service.store.tx((tx) => tx.insert(deliveries).values(others))
    await happens(project, "email.bounced")
    await settleAs(service, project, { status: "exhausted", attempts: 6 })
    const path = `/v1/webhooks/${id}/deliveries/bulk-retry`
    clock.advance({ seconds: 1 })
    const job = await done(project, path, { event_types: ["email.bounced"] })
    expect(job.progress.total).toBe(0)
    const ended = (await project.get(`/v1/jobs/${job.id}`)).body.data
    expect(ended.progress).toEqual({ done: 1, total: 1, failed: 0 })
  })

  test.each([
    [{ status: ["success"] }, ["status.0"]],
    [{ event_types: ["nothing.*"] }, ["event_types.0"]],
    [{ since: "today" }, ["since"]],
    [{ since: "2026-02-02T00:00:00Z", until: LONG_AGO }, ["until"]],
  ])("refuses %j", async (body, paths) => {
    const project = await service.project()
    const { id } = await endpoint(project)
    const refused = await project.post(`/v1/webhooks/${id}/deliveries/bulk-retry`, body)
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(complaints(refused)).toEqual(paths)
  })
})

describe("a replay", () => {
  test("lets go what was held, and nothing else", async () => {
    const project = await service.project()
    const { id } = await endpoint(project)
    await happens(project, "email.sent")
    await settleAs(service, project, { status: "exhausted" })
    await project.post(`/v1/webhooks/${id}/pause`)
    await happens(project, "sms.sent")
    await happens(project, "email.bounced")
    await project.post(`/v1/webhooks/${id}/enable`)
    const path = `/v1/webhooks/${id}/replay`
    clock.advance({ seconds: 1 })
    const job = await done(project, path, { since: LONG_AGO, event_types: ["sms.*"] })
    expect(job).toMatchObject({ type: "webhook.replay", progress: { total: 1 } })
    expect(short(await deliveriesOf(project, id))).toEqual([
      "email.bounced held event",
      "email.sent exhausted event",
      "sms.sent pending replay",
    ])
  })

  test("of what failed sends that again, and counts as any other attempt", async () => {
    const project = await service.project()
    const { id } = await endpoint(project)
    await happens(project)
    await settleAs(service, project, { status: "failed", attempts: 2 })
    clock.advance({ seconds: 1 })
    await done(project, `/v1/webhooks/${id}/replay`, { since: LONG_AGO, status: "failed" })
    const ours = eq(deliveries.project_id, project.project_id)
    const [row] = await service.store.read.select().from(deliveries).where(ours)
    expect(row).toMatchObject({ status: "pending", trigger: "replay", by_hand: false })
  })

  test("of all sends every event that the endpoint would take, also from before its time", async () => {
    const project = await service.project()
    await happens(project, "email.sent")
    await happens(project, "sms.sent")
    const { id } = await endpoint(project, { events: ["email.*"] })
    const event = await happens(project, "email.bounced")
    await settleAs(service, project, { status: "success", attempts: 1 })
    await happens(project, "email.clicked")
    clock.advance({ seconds: 1 })
    const wish = { since: LONG_AGO, status: "all" }
    const job = await done(project, `/v1/webhooks/${id}/replay`, wish)
    expect(job.progress.total).toBe(4)
    // One of another type, and one that is still on its way.
    const { progress, status } = (await project.get(`/v1/jobs/${job.id}`)).body.data
    expect([status, progress]).toEqual(["completed", { done: 2, total: 2, failed: 0 }])
    expect(short(await deliveriesOf(project, id))).toEqual([
      "email.bounced pending replay",
      "email.bounced success event",
      "email.clicked pending event",
      "email.sent pending replay",
    ])
    const again = await deliveriesOf(project, id, `?event_id=${event.id}`)
    expect(again.map(({ msg_id }: { msg_id: string }) => msg_id)).toEqual([event.id, event.id])
  })

  test("of all leaves tests to whom they were for", async () => {
    const project = await service.project()
    const tested = await endpoint(project)
    await project.post(`/v1/webhooks/${tested.id}/test`)
    await project.post(`/v1/webhooks/${tested.id}/test`, { event_type: "user.deleted" })
    const { id } = await endpoint(project)
    clock.advance({ seconds: 1 })
    await done(project, `/v1/webhooks/${id}/replay`, { since: LONG_AGO, status: "all" })
    expect(await deliveriesOf(project, id)).toEqual([])
  })

  test("of all goes through however many there are, each once", async () => {
    const project = await service.project()
    const sent: string[] = []
    for (let number = 0; number < 410; number++) sent.push((await happens(project)).id)
    const { id } = await endpoint(project)
    clock.advance({ seconds: 1 })
    await done(project, `/v1/webhooks/${id}/replay`, { since: LONG_AGO, status: "all" })
    const ours = eq(deliveries.project_id, project.project_id)
    const rows = await service.store.read.select().from(deliveries).where(ours)
    expect(rows.map(({ event_id }) => event_id).sort()).toEqual(sent.sort())
  })

  test("is a conflict unless the endpoint is active", async () => {
    const project = await service.project()
    const { id } = await endpoint(project)
    await project.post(`/v1/webhooks/${id}/pause`)
    const refused = await project.post(`/v1/webhooks/${id}/replay`, { since: LONG_AGO })
    expect(refusal(refused)).toEqual([409, "conflict"])
    expect(refused.body.error.details).toEqual({ reason: "not_active", id })
  })

  test("begins somewhere, and is begun once for an idempotency key", async () => {
    const project = await service.project()
    const { id } = await endpoint(project)
    const refused = await project.post(`/v1/webhooks/${id}/replay`, {})
    expect(refusal(refused)).toEqual([422, "missing_required_field"])
    const key = { "idempotency-key": "one" }
    const wish = { since: LONG_AGO }
    const first = await project.post(`/v1/webhooks/${id}/replay`, wish, key)
    const second = await project.post(`/v1/webhooks/${id}/replay`, wish, key)
    expect(second.body.data).toEqual(first.body.data)
    await replayAll(service)
  })
})
