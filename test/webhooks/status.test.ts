import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { DEAD } from "../../src/jobs/work-item"
import { deliveries, webhooks } from "../../src/webhooks/tables"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { deliveriesOf, endpoint, happens, replayAll } from "./endpoints"

const service = await sharedService()

const states = async (project: TestProject, id: string) =>
  (await deliveriesOf(project, id)).map(({ status }: { status: string }) => status)

const typesOf = async (project: TestProject) =>
  (await project.get("/v1/events")).body.data.map(({ type }: { type: string }) => type)

describe("disabled by hand", () => {
  test.each([
    ["disable", "manual"],
    ["pause", "paused"],
  ])("%s holds what is open and what comes, for the reason %s", async (verb, reason) => {
    const project = await service.project()
    const { id } = await endpoint(project)
    await happens(project)
    const { status, body } = await project.post(`/v1/webhooks/${id}/${verb}`)
    expect(status).toBe(200)
    const disabled = { status: "disabled", enabled: false, disabled_reason: reason, held_count: 1 }
    expect(body.data).toMatchObject(disabled)
    expect(body.data.disabled_at).not.toBeNull()
    await happens(project)
    expect(await states(project, id)).toEqual(["held", "held"])
    expect((await project.get(`/v1/webhooks/${id}`)).body.data.held_count).toBe(2)
  })

  test("tells the other endpoints once; a second time only the reason changes", async () => {
    const project = await service.project()
    const { id } = await endpoint(project)
    const other = await endpoint(project, { events: ["webhook.disabled"] })
    await project.post(`/v1/webhooks/${id}/pause`)
    const { body } = await project.post(`/v1/webhooks/${id}/disable`)
    expect(body.data.disabled_reason).toBe("manual")
    expect(await typesOf(project)).toEqual(["webhook.disabled"])
    expect(await deliveriesOf(project, other.id)).toHaveLength(1)
    expect(await deliveriesOf(project, id)).toEqual([])
  })
})

describe("enabled again", () => {
  async function failing(project: TestProject) {
    const { id } = await endpoint(project)
    await service.store.tx((tx) =>
      tx.update(webhooks).set({ consecutive_failures: 7 }).where(eq(webhooks.id, id)),
    )
    await project.post(`/v1/webhooks/${id}/disable`)
    await happens(project)
    return id
  }

  test("the counter is 0, and what was held stays so", async () => {
    const project = await service.project()
    const id = await failing(project)
    const { status, body } = await project.post(`/v1/webhooks/${id}/enable`)
    expect(status).toBe(200)
    const active = { status: "active", enabled: true, consecutive_failures: 0, held_count: 1 }
    expect(body.data).toMatchObject({ ...active, disabled_reason: null, disabled_at: null })
    expect(await states(project, id)).toEqual(["held"])
    await happens(project)
    expect(await states(project, id)).toEqual(["pending", "held"])
  })

  test("with replay what was held is due at once, each of it once", async () => {
    const project = await service.project()
    const id = await failing(project)
    const { body } = await project.post(`/v1/webhooks/${id}/enable`, { replay: "held" })
    expect(body.data.held_count).toBe(0)
    const [delivery] = await deliveriesOf(project, id)
    expect(delivery).toMatchObject({ status: "pending", trigger: "replay", attempts: 0 })
    await project.post(`/v1/webhooks/${id}/enable`, { replay: "held" })
    expect(await deliveriesOf(project, id)).toHaveLength(1)
  })

  test("however much was held", async () => {
    const project = await service.project()
    const { id } = await endpoint(project)
    await project.post(`/v1/webhooks/${id}/pause`)
    for (let number = 0; number < 230; number++) await happens(project)
    await project.post(`/v1/webhooks/${id}/enable`, { replay: "held" })
    await replayAll(service)
    const { meta } = (await project.get(`/v1/webhooks/${id}/deliveries?status=pending`)).body
    expect(meta.total).toBe(230)
  })
})

test("enabled in a change pauses and activates", async () => {
  const project = await service.project()
  const { id } = await endpoint(project)
  const change = async (enabled: boolean) =>
    (await project.call("PATCH", `/v1/webhooks/${id}`, { body: { enabled } })).body.data
  expect(await change(false)).toMatchObject({ status: "disabled", disabled_reason: "paused" })
  expect(await change(false)).toMatchObject({ status: "disabled", disabled_reason: "paused" })
  expect(await change(true)).toMatchObject({ status: "active", disabled_reason: null })
})

test("a deletion ends what is open, and nothing comes any more", async () => {
  const project = await service.project()
  const { id } = await endpoint(project)
  const paused = await endpoint(project)
  await project.post(`/v1/webhooks/${paused.id}/pause`)
  await happens(project)
  for (const one of [id, paused.id]) await project.call("DELETE", `/v1/webhooks/${one}`)
  const ours = eq(deliveries.project_id, project.project_id)
  const rows = await service.store.read.select().from(deliveries).where(ours)
  const left = rows.map(({ status, event_type }) => `${event_type} ${status}`)
  expect(new Set(left)).toEqual(new Set(["webhook.disabled exhausted", "email.sent exhausted"]))
  for (const row of rows) expect(row.state).toBe(DEAD)
  await happens(project)
  expect(await service.store.read.select().from(deliveries).where(ours)).toHaveLength(rows.length)
})
