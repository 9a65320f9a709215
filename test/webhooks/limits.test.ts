import { describe, expect, test } from "bun:test"
import { refusal } from "../harness/client"
import { team } from "../harness/people"
import { sharedService } from "../harness/shared-service"
import { endpoint, hook } from "./endpoints"

const service = await sharedService()

describe("a plan's number of endpoints", () => {
  test("is refused beyond, with what is used and what is allowed", async () => {
    const project = await service.project({ plan: "free" })
    await endpoint(project)
    const { id } = await endpoint(project)
    const refused = await project.post("/v1/webhooks", hook())
    expect(refusal(refused)).toEqual([403, "plan_limit_exceeded"])
    const details = { resource: "webhooks", used: 2, limit: 2, plan: "free" }
    expect(refused.body.error.details).toEqual(details)
    await project.call("DELETE", `/v1/webhooks/${id}`)
    expect((await project.post("/v1/webhooks", hook())).status).toBe(201)
  })

  test("holds however many are made at the same moment", async () => {
    const project = await service.project({ plan: "free", limits: { requests_per_minute: null } })
    const wishes = Array.from({ length: 12 }, () => project.post("/v1/webhooks", hook()))
    const statuses = (await Promise.all(wishes)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 201)).toHaveLength(2)
    expect(statuses.filter((status) => status === 403)).toHaveLength(10)
    expect((await project.get("/v1/webhooks")).body.meta.total).toBe(2)
  })

  test("is the account's, over all of its projects", async () => {
    const starter = await team(service, "starter")
    const other = await starter.owner.post("/v1/projects", { name: "Second" })
    const here = [starter.project_id, other.body.data.id].map((id) => ({ "x-project-id": id }))
    for (let number = 0; number < 10; number++) {
      const { status } = await starter.owner.post("/v1/webhooks", hook(), here[number % 2])
      expect(status).toBe(201)
    }
    const refused = await starter.owner.post("/v1/webhooks", hook(), here[1])
    expect(refusal(refused)).toEqual([403, "plan_limit_exceeded"])
    expect(refused.body.error.details.used).toBe(10)
  })

  test("comes after the rest of the request was judged", async () => {
    const project = await service.project({ limits: { webhooks: 0 } })
    const refused = await project.post("/v1/webhooks", hook({ events: [] }))
    expect(refusal(refused)).toEqual([422, "validation_error"])
  })
})

test("the account's resources count them, and the breakdown by project does", async () => {
  const { owner, project_id } = await team(service, "pro")
  const made = await owner.post("/v1/webhooks", hook())
  await owner.post("/v1/webhooks", hook())
  const counts = async () => (await owner.get("/v1/accounts/me/resource-counts")).body.data.webhooks
  expect(await counts()).toEqual({ used: 2, limit: 50 })
  await owner.remove(`/v1/webhooks/${made.body.data.id}`)
  expect(await counts()).toEqual({ used: 1, limit: 50 })
  const { data } = (await owner.get("/v1/accounts/me/project-breakdown")).body
  const [ours] = data.filter((row: { project_id: string }) => row.project_id === project_id)
  expect(ours.resources.webhooks).toBe(1)
})
