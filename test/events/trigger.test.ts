import { describe, expect, test } from "bun:test"
import { lookup } from "../../src/events/registry"
import { complaints, refusal } from "../harness/client"
import { NOBODY } from "../harness/mail"
import { sharedService } from "../harness/shared-service"
import { deliveriesOf, endpoint } from "../webhooks/endpoints"

const service = await sharedService()

describe("an event that is triggered", () => {
  test("is the example, says that it did not happen, and can be read", async () => {
    const project = await service.project()
    const { status, body } = await project.post("/v1/events/trigger", { type: "email.bounced" })
    expect(status).toBe(201)
    const { data, ...envelope } = body.data
    expect(envelope).toMatchObject({ type: "email.bounced", api_version: "2026-02-01" })
    expect(envelope.id).toMatch(/^evt_[0-9a-f-]{36}$/)
    expect(data).toEqual({ ...lookup("email.bounced")?.example.data, simulated: true })
    expect((await project.get(`/v1/events/${envelope.id}`)).body.data).toEqual(body.data)
    expect((await project.get("/v1/events")).body.data).toEqual([body.data])
  })

  test("takes data over the example's, member by member, and stays marked", async () => {
    const project = await service.project()
    const wish = { user: { email: "kim@example.com" }, metadata: { reason: "x" }, simulated: false }
    const asked = { type: "user.login", data: { ...wish, extra: [1] } }
    const { data } = (await project.post("/v1/events/trigger", asked)).body.data
    const example = lookup("user.login")?.example.data ?? {}
    expect(data.user).toEqual({ ...(example.user as object), email: "kim@example.com" })
    expect(data.metadata).toEqual({ ...(example.metadata as object), reason: "x" })
    expect(data).toMatchObject({ simulated: true, extra: [1] })
  })

  test("goes to the endpoints that want it", async () => {
    const project = await service.project()
    const { id } = await endpoint(project, { events: ["email.*"] })
    const other = await endpoint(project, { events: ["sms.*"] })
    await project.post("/v1/events/trigger", { type: "email.sent" })
    const [delivery] = await deliveriesOf(project, id)
    expect(delivery).toMatchObject({ event_type: "email.sent", trigger: "event" })
    expect(await deliveriesOf(project, other.id)).toEqual([])
  })

  test.each([
    ["an unknown type", { type: "email.snet" }, "validation_error", ["type"]],
    ["a pattern", { type: "email.*" }, "validation_error", ["type"]],
    ["no type", {}, "missing_required_field", ["type"]],
    ["data that is no object", { type: "email.sent", data: [] }, "validation_error", ["data"]],
  ])("is refused with %s", async (_, body, code, paths) => {
    const project = await service.project()
    const refused = await project.post("/v1/events/trigger", body)
    expect(refusal(refused)).toEqual([422, code])
    expect(complaints(refused)).toEqual(paths)
  })

  test("is made once for an idempotency key", async () => {
    const project = await service.project()
    const key = { "idempotency-key": "one" }
    const [first, second] = [
      await project.post("/v1/events/trigger", { type: "email.sent" }, key),
      await project.post("/v1/events/trigger", { type: "email.sent" }, key),
    ]
    expect(second.body.data).toEqual(first.body.data)
    expect((await project.get("/v1/events")).body.data).toHaveLength(1)
  })
})

test("an event of another project is as absent as one that never was", async () => {
  const [project, stranger] = [await service.project(), await service.project()]
  const { id } = (await project.post("/v1/events/trigger", { type: "email.sent" })).body.data
  for (const one of [id, `evt_${NOBODY}`, NOBODY, "evt_", id.slice(4)]) {
    expect(refusal(await stranger.get(`/v1/events/${one}`))).toEqual([404, "not_found"])
  }
})

describe("the feed read from its end", () => {
  test("gives the latest, oldest first, and says whether more stands before", async () => {
    const project = await service.project()
    const made: string[] = []
    for (const type of ["email.sent", "sms.sent", "email.bounced", "email.opened"]) {
      made.push((await project.post("/v1/events/trigger", { type })).body.data.id)
    }
    const page = async (query: string) => {
      const { status, body } = await project.get(`/v1/events?${query}`)
      return [status, body.data?.map(({ id }: { id: string }) => id), body.meta.has_more]
    }
    expect(await page("before=&limit=2")).toEqual([200, made.slice(2), true])
    expect(await page(`before=${made[2]}`)).toEqual([200, made.slice(0, 2), false])
    expect(await page("before=&types=sms.*")).toEqual([200, [made[1]], false])
  })

  test("takes either after or before, and only ids that are known", async () => {
    const project = await service.project()
    const both = await project.get("/v1/events?before=&after=")
    expect([refusal(both), complaints(both)]).toEqual([[422, "validation_error"], ["before"]])
    const unknown = await project.get("/v1/events?before=evt_x")
    expect(complaints(unknown)).toEqual(["before"])
  })
})
