import { describe, expect, test } from "bun:test"
import { auditLog } from "../../src/audit-log/tables"
import { complaints, refusal } from "../harness/client"
import { NOBODY } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { endpoint } from "../webhooks/endpoints"

const service = await sharedService()
const PATH = "/v1/inbound-routes"

const create = (project: TestProject, fields: object = {}) =>
  project.post(PATH, { match: { to: "support+*@in.example.test" }, action: "drop", ...fields })

describe("a route", () => {
  test("is made, listed, shown, changed and deleted", async () => {
    const project = await service.project()
    const { id: webhook_id } = await endpoint(project)
    const made = await create(project, { action: "webhook", target: webhook_id, priority: 5 })
    expect(made.status).toBe(201)
    const { data } = made.body
    expect(data).toEqual({
      id: expect.any(String),
      match: { to: "support+*@in.example.test" },
      action: "webhook",
      target: webhook_id,
      priority: 5,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    expect((await project.get(`${PATH}/${data.id}`)).body.data).toEqual(data)
    const list = (await project.get(PATH)).body
    expect([list.data, list.meta.total]).toEqual([[data], 1])

    const forward = { action: "forward", target: "Kim <kim@example.test>" }
    const changed = await project.call("PATCH", `${PATH}/${data.id}`, { body: forward })
    expect(changed.body.data).toMatchObject({ action: "forward", target: "kim@example.test" })
    const moved = { match: { to: "*@IN.example.test" } }
    const again = await project.call("PATCH", `${PATH}/${data.id}`, { body: moved })
    expect(again.body.data.match).toEqual({ to: "*@in.example.test" })
    const dropped = await project.call("PATCH", `${PATH}/${data.id}`, { body: { action: "drop" } })
    expect(dropped.body.data).toMatchObject({ action: "drop", target: null, priority: 5 })

    const removed = await project.call("DELETE", `${PATH}/${data.id}`)
    expect(removed.body.data).toEqual({ id: data.id, deleted: true })
    expect(refusal(await project.get(`${PATH}/${data.id}`))).toEqual([404, "not_found"])
    const audit = await service.store.read.select().from(auditLog)
    const ours = audit.filter(({ target_id }) => target_id === data.id)
    expect(ours.map(({ action }) => action)).toEqual([
      "inbound_route.created",
      "inbound_route.updated",
      "inbound_route.updated",
      "inbound_route.updated",
      "inbound_route.deleted",
    ])
    expect(ours.at(-1)?.before).toEqual(dropped.body.data) // as the API shows it
  })

  test("has the same match once", async () => {
    const project = await service.project()
    const { id } = (await create(project)).body.data
    const second = await create(project, { match: { to: "Support+*@in.EXAMPLE.test" } })
    expect(refusal(second)).toEqual([409, "conflict"])
    expect(second.body.error.details).toEqual({ reason: "exists", id })
    const other = (await create(project, { match: { to: "*@in.example.test" } })).body.data
    const body = { match: { to: "support+*@in.example.test" } }
    const moved = await project.call("PATCH", `${PATH}/${other.id}`, { body })
    expect(refusal(moved)).toEqual([409, "conflict"])
    const itself = await project.call("PATCH", `${PATH}/${id}`, { body: { ...body, priority: 1 } })
    expect(itself.status).toBe(200)
    expect((await create(await service.project())).status).toBe(201)
  })

  test("is the project's own", async () => {
    const [one, two] = [await service.project(), await service.project()]
    const { id } = (await create(one)).body.data
    const { id: webhook_id } = await endpoint(one)
    for (const other of [id, NOBODY, "x"]) {
      const path = `${PATH}/${other}`
      expect(refusal(await two.get(path))).toEqual([404, "not_found"])
      const body = { priority: 1 }
      expect(refusal(await two.call("PATCH", path, { body }))).toEqual([404, "not_found"])
      expect(refusal(await two.call("DELETE", path))).toEqual([404, "not_found"])
    }
    const foreign = await create(two, { action: "webhook", target: webhook_id })
    expect(refusal(foreign)).toEqual([404, "webhook_not_found"])
    expect((await two.get(PATH)).body.data).toEqual([])
  })

  test.each([
    "a@b.test",
    "a+b@c.test",
    "*@c.test",
    "a+*@c.test",
    "a+b+*@c.test",
    "ä+*@bücher.test",
  ])("may match %s", async (to) => {
    expect((await create(await service.project(), { match: { to } })).status).toBe(201)
  })

  test.each<[object, string]>([
    [{ match: { to: "support" } }, "match.to"],
    [{ match: { to: "" } }, "match.to"],
    [{ match: { to: "*" } }, "match.to"],
    [{ match: { to: "su*@in.example.test" } }, "match.to"],
    [{ match: { to: "*+a@in.example.test" } }, "match.to"],
    [{ match: { to: "*@*" } }, "match.to"],
    [{ match: { to: "*@*.example.test" } }, "match.to"],
    [{ match: { to: "a@b.test, c@d.test" } }, "match.to"],
    [{ match: { to: "a@b.test\r\n" } }, "match.to"],
    [{ match: {} }, "match.to"],
    [{ action: "bounce" }, "action"],
    [{ action: "forward" }, "target"],
    [{ action: "forward", target: "kim" }, "target"],
    [{ action: "drop", target: "kim@example.test" }, "target"],
    [{ priority: -1 }, "priority"],
    [{ priority: 1001 }, "priority"],
  ])("with %j is refused", async (fields, field) => {
    const refused = await create(await service.project(), fields)
    expect([refused.status, complaints(refused)]).toEqual([422, [field]])
  })

  test("that would forward mail to itself is refused, also by way of others and in a change", async () => {
    const project = await service.project()
    const pass = (to: string, target: string, more: object = {}) =>
      create(project, { match: { to }, action: "forward", target, ...more })
    for (const [to, target] of [
      ["a@in.example.test", "A@IN.example.test"],
      ["*@in.example.test", "anything@in.example.test"],
      ["sales+*@in.example.test", "Sales <sales+eu@in.example.test>"],
    ] as const) {
      const refused = await pass(to, target)
      expect([to, refused.status, complaints(refused)]).toEqual([to, 422, ["target"]])
      expect(JSON.stringify(refused.body)).toContain("would come back for ever")
    }
    // The exact address decides before the pattern, so this is no loop.
    expect((await pass("*@in.example.test", "kim@in.example.test")).status).toBe(422)
    expect((await create(project, { match: { to: "kim@in.example.test" } })).status).toBe(201)
    expect((await pass("*@in.example.test", "kim@in.example.test")).status).toBe(201)

    const { id } = (await pass("one@b.test", "two@b.test")).body.data
    expect((await pass("two@b.test", "three@b.test")).status).toBe(201)
    expect(complaints(await pass("three@b.test", "one@b.test"))).toEqual(["target"])
    const changed = await project.call("PATCH", `${PATH}/${id}`, { body: { target: "one@b.test" } })
    expect([changed.status, complaints(changed)]).toEqual([422, ["target"]])
  })

  test("needs the scope for changes of received mail", async () => {
    const project = await service.project({ scopes: ["inbound:read"] })
    expect(refusal(await create(project))).toEqual([403, "forbidden"])
    expect((await project.get(PATH)).status).toBe(200)
    const mail = await service.project({ scopes: ["email:read"] })
    expect(refusal(await mail.get(PATH))).toEqual([403, "forbidden"])
  })
})
