import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { recentLines } from "../../src/core/log"
import { webhooks } from "../../src/webhooks/tables"
import { receiver } from "../fakes/receiver"
import { atRest } from "../harness/at-rest"
import { complaints, refusal } from "../harness/client"
import { team } from "../harness/people"
import { quietLog } from "../harness/quiet"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { endpoint, hook } from "./endpoints"

quietLog()
const service = await sharedService()
const { store } = service

const one = (id: string) => `/v1/webhooks/${id}`
const patch = (project: TestProject, id: string, headers: object) =>
  project.call("PATCH", one(id), { body: { headers } })

/** The headers with which a test call of the endpoint arrives. */
async function arriving(project: TestProject, id: string, fake: ReturnType<typeof receiver>) {
  const tested = await project.post(`${one(id)}/test`)
  expect(tested.body.data).toMatchObject({ delivered: true })
  return fake.received.at(-1)?.headers ?? {}
}

describe("values of custom headers", () => {
  test("are shown by no answer, no log and nothing at rest, and arrive as they are", async () => {
    const { owner, account_id, project_id } = await team(service)
    const here = { "x-account-id": account_id, "x-project-id": project_id }
    const value = "Bearer opensesame-1001"
    using fake = receiver(({ headers }) => new Response(headers["x-token"]))
    const keyed = { ...here, "idempotency-key": "custom" }
    const wanted = hook({ url: fake.url, headers: { "X-Token": value, "X-Empty": "" } })
    const made = await owner.post("/v1/webhooks", wanted, keyed)
    expect(made.status).toBe(201)
    const { id } = made.body.data
    const again = await owner.post("/v1/webhooks", wanted, keyed)
    const tested = await owner.post(`${one(id)}/test`, {}, here)
    expect(fake.received.at(-1)?.headers).toMatchObject({ "x-token": value, "x-empty": "" })
    const { delivery_id } = tested.body.data
    const answers = [
      made,
      again,
      tested,
      await owner.patch(one(id), { description: "changed" }, here),
      await owner.get(one(id), here),
      await owner.get("/v1/webhooks", here),
      await owner.get(`${one(id)}/deliveries/${delivery_id}`, here),
      await owner.post(`${one(id)}/pause`, {}, here),
      await owner.post(`${one(id)}/enable`, {}, here),
      await owner.get("/v1/events", here),
      await owner.get("/v1/audit-log", here),
    ]
    for (const { status, text } of answers) {
      expect(status).toBeLessThan(300)
      expect(text).not.toContain("opensesame")
    }
    for (const at of [0, 1, 3, 4, 7, 8]) {
      expect(answers[at]?.body.data.headers).toEqual({ "X-Token": "****", "X-Empty": "****" })
    }
    expect(tested.body.data.response_body).toBe("****")
    expect(recentLines().join()).not.toContain("opensesame")
    expect(await atRest(service)).not.toContain("opensesame")
  })

  test("are kept by a mask that is sent back, in whatever case the name is", async () => {
    const project = await service.project()
    using fake = receiver()
    const headers = { "X-Kept": "kept-2001", "X-Changed": "old-2002", "X-Gone": "gone-2003" }
    const { id } = await endpoint(project, { url: fake.url, headers })
    const changed = await patch(project, id, { "x-kept": "****", "X-Changed": "new-2004" })
    expect(changed.body.data.headers).toEqual({ "x-kept": "****", "X-Changed": "****" })
    const sent = await arriving(project, id, fake)
    expect(sent).toMatchObject({ "x-kept": "kept-2001", "x-changed": "new-2004" })
    expect(sent).not.toHaveProperty("x-gone")

    const whole = (await project.get(one(id))).body.data
    expect((await project.call("PUT", one(id), { body: whole })).status).toBe(200)
    expect(await arriving(project, id, fake)).toMatchObject({ "x-kept": "kept-2001" })
    expect((await patch(project, id, {})).body.data.headers).toEqual({})
    expect(await arriving(project, id, fake)).not.toHaveProperty("x-kept")
  })

  test("are not made of a mask: where nothing is stored it is refused", async () => {
    const project = await service.project()
    const headers = { "X-New": "****" }
    const made = await project.post("/v1/webhooks", hook({ headers }))
    expect(refusal(made)).toEqual([422, "validation_error"])
    expect(complaints(made)).toEqual(["headers.X-New"])
    const { id } = await endpoint(project, { headers: { "X-Other": "other-3001" } })
    const changed = await patch(project, id, { ...headers, "X-Other": "****" })
    expect(refusal(changed)).toEqual([422, "validation_error"])
    expect(complaints(changed)).toEqual(["headers.X-New"])
    expect((await project.get(one(id))).body.data.headers).toEqual({ "X-Other": "****" })
  })

  test("do not open in another endpoint's row", async () => {
    const project = await service.project()
    using fake = receiver()
    const { id } = await endpoint(project, { url: fake.url, headers: { "X-Token": "moved-4001" } })
    const thief = await endpoint(project, { url: fake.url })
    const [row] = await store.read.select().from(webhooks).where(eq(webhooks.id, id))
    const { headers = {}, sealed_headers = null } = row ?? {}
    const theirs = eq(webhooks.id, thief.id)
    await store.tx((tx) => tx.update(webhooks).set({ headers, sealed_headers }).where(theirs))
    const tested = await project.post(`${one(thief.id)}/test`)
    expect(tested.body.data).toMatchObject({ delivered: false, error: "connection" })
    expect(fake.received).toEqual([])
  })
})
