import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import * as apiKeys from "../../src/identity/api-keys"
import { projects } from "../../src/identity/tables"
import { instanceProject } from "../../src/tenancy/projects"
import { refusal } from "../harness/client"
import { mail } from "../harness/mail"
import { type Team, team } from "../harness/people"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store, anybody } = service
const path = (id: string) => `/v1/projects/${id}`

const keyFor = async ({ account_id, project_id }: Team) => {
  const owner = { account_id, project_id, created_by: { type: "local" as const, id: null } }
  const wanted = { name: "k", scopes: ["*"], ip_addresses: [], expires_at: null }
  return (await store.tx((tx) => apiKeys.create(tx, owner, wanted))).key
}

describe("making projects", () => {
  test.each(["/v1/projects", "/v1/accounts/me/projects"])("at %s", async (at) => {
    const { owner, account_id } = await team(service)
    const made = await owner.post(at, { name: "Second One" })
    expect(made.status).toBe(201)
    expect(made.body.data).toEqual({
      id: expect.any(String),
      account_id,
      name: "Second One",
      slug: "second-one",
      status: "active",
      sandbox: false,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    const { body } = await owner.get(at)
    expect(body.data[0]).toEqual(made.body.data)
    expect(body.meta.total).toBe(2)
  })

  test("a slug is one's own within the account", async () => {
    const [ours, theirs] = [await team(service), await team(service)]
    const taken = await ours.owner.post("/v1/projects", { name: "x", slug: "default" })
    expect(refusal(taken)).toEqual([409, "conflict"])
    expect(taken.body.error.details).toEqual({ reason: "slug_taken", id: ours.project_id })
    const slug = "only-ours"
    for (const { owner } of [ours, theirs]) {
      expect((await owner.post("/v1/projects", { name: "x", slug })).status).toBe(201)
    }
    const wrong = await ours.owner.post("/v1/projects", { name: "x", slug: "No Good" })
    expect(refusal(wrong)).toEqual([422, "validation_error"])
  })

  test("as many as the plan allows, also at once", async () => {
    const { owner } = await team(service, "starter")
    const five = await Promise.all(
      [1, 2, 3, 4, 5].map((n) => owner.post("/v1/projects", { name: `p${n}` })),
    )
    expect(five.map(({ status }) => status).sort()).toEqual([201, 201, 403, 403, 403])
    const refused = await owner.post("/v1/projects", { name: "more" })
    expect(refusal(refused)).toEqual([403, "plan_limit_exceeded"])
    expect(refused.body.error.details).toEqual({
      resource: "projects",
      used: 3,
      limit: 3,
      plan: "starter",
    })
  })

  test("is for owners and admins", async () => {
    const { join } = await team(service)
    expect((await (await join("admin")).post("/v1/projects", { name: "x" })).status).toBe(201)
    for (const role of ["member", "billing_admin"] as const) {
      const refused = await (await join(role)).post("/v1/projects", { name: "x" })
      expect(refusal(refused)).toEqual([403, "forbidden"])
      expect(refused.body.error.details).toEqual({ required_role: "account_admin" })
    }
  })
})

describe("who sees which", () => {
  test("members see those in which they have a role", async () => {
    const { owner, join, project_id } = await team(service)
    const member = await join("member")
    const other = (await owner.post("/v1/projects", { name: "Other" })).body.data
    expect((await member.get("/v1/projects")).body.data).toEqual([])
    await owner.post(`${path(other.id)}/members`, { email: member.email, role: "viewer" })
    expect((await member.get("/v1/projects")).body.data).toEqual([other])
    expect((await member.get(path(other.id))).body.data).toEqual(other)
    expect(refusal(await member.get(path(project_id)))).toEqual([404, "not_found"])
  })

  test("a key sees its own", async () => {
    const ours = await team(service)
    const theirs = await team(service)
    const headers = { "x-api-key": await keyFor(ours) }
    expect((await anybody.get(path(ours.project_id), headers)).body.data.id).toBe(ours.project_id)
    const second = (await ours.owner.post("/v1/projects", { name: "Second" })).body.data
    const absent = await anybody.get(path(newId()), headers)
    expect(refusal(absent)).toEqual([404, "not_found"])
    for (const id of [second.id, theirs.project_id, "x"]) {
      expect((await anybody.get(path(id), headers)).body.error).toEqual(absent.body.error)
    }
  })

  test("another account's is like none, whatever is asked of it", async () => {
    const [ours, theirs] = [await team(service), await team(service)]
    for (const [method, tail, body] of [
      ["GET", "", undefined],
      ["PATCH", "", { name: "x" }],
      ["DELETE", "", { confirm: "Default" }],
      ["POST", "/restore", undefined],
      ["GET", "/members", undefined],
      ["POST", "/members", { user_id: ours.owner.id, role: "viewer" }],
      ["PATCH", `/members/${theirs.owner.id}`, { role: "viewer" }],
      ["DELETE", `/members/${theirs.owner.id}`, undefined],
    ] as const) {
      const ask = (id: string) => ours.owner.call(method, path(id) + tail, { body })
      const [foreign, absent] = [await ask(theirs.project_id), await ask(newId())]
      expect(refusal(foreign)).toEqual([404, "not_found"])
      expect(foreign.body.error).toEqual(absent.body.error)
    }
    expect((await theirs.owner.get(path(theirs.project_id))).body.data.status).toBe("active")
  })

  test("the instance's own project is nobody's", async () => {
    const { owner } = await team(service)
    const hidden = await store.tx((tx) => instanceProject(tx))
    expect(await store.tx((tx) => instanceProject(tx))).toEqual(hidden)
    const refused = await owner.get(path(hidden.project_id))
    expect(refusal(refused)).toEqual([404, "not_found"])
    const named = { "x-account-id": hidden.account_id }
    expect(refusal(await owner.get("/v1/projects", named))).toEqual([404, "not_found"])
  })
})

describe("changing one", () => {
  test("name and slug, by its admins", async () => {
    const { owner, join, project_id } = await team(service)
    const developer = await join("member")
    const body = { user_id: developer.id, role: "developer" }
    await owner.post(`${path(project_id)}/members`, body)
    expect(refusal(await developer.patch(path(project_id), { name: "x" }))).toEqual([
      403,
      "forbidden",
    ])
    await owner.patch(`${path(project_id)}/members/${developer.id}`, { role: "admin" })
    const changed = await developer.patch(path(project_id), { name: "New", slug: "new" })
    expect(changed.body.data).toMatchObject({ name: "New", slug: "new" })
    expect((await owner.get(path(project_id))).body.data).toEqual(changed.body.data)
  })

  test("not to another's slug", async () => {
    const { owner, project_id } = await team(service)
    const other = (await owner.post("/v1/projects", { name: "Other" })).body.data
    const refused = await owner.patch(path(project_id), { slug: "other" })
    expect(refusal(refused)).toEqual([409, "conflict"])
    expect(refused.body.error.details).toEqual({ reason: "slug_taken", id: other.id })
    expect((await owner.patch(path(project_id), { slug: "default" })).status).toBe(200)
  })
})

describe("deleting one", () => {
  test("needs its name, and another one that stays", async () => {
    const { owner, project_id } = await team(service)
    const remove = (confirm: string) => owner.remove(path(project_id), { confirm })
    const last = await remove("Default")
    expect(refusal(last)).toEqual([409, "conflict"])
    expect(last.body.error.details).toEqual({ reason: "last_project", id: project_id })
    expect(refusal(await remove("default"))).toEqual([422, "validation_error"])
  })

  test("of the last two, deleted at once, one stays", async () => {
    const { owner, project_id } = await team(service)
    const other = (await owner.post("/v1/projects", { name: "Default" })).body.data
    const both = await Promise.all(
      [project_id, other.id].map((id) => owner.remove(path(id), { confirm: "Default" })),
    )
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
  })

  test("ends its keys at once, and can be taken back", async () => {
    const ours = await team(service)
    const { owner, project_id } = ours
    await owner.post("/v1/projects", { name: "Other" })
    const headers = { "x-api-key": await keyFor(ours) }
    expect((await anybody.get("/v1/emails", headers)).status).toBe(200)
    const gone = await owner.remove(path(project_id), { confirm: "Default" })
    expect(gone.body.data).toEqual({ id: project_id, deleted: true })
    expect(refusal(await anybody.get("/v1/emails", headers))).toEqual([401, "unauthorized"])
    expect((await owner.get(path(project_id))).body.data.status).toBe("deleting")
    expect(refusal(await owner.remove(path(project_id), { confirm: "Default" }))[0]).toBe(404)

    const back = await owner.post(`${path(project_id)}/restore`)
    expect([back.status, back.body.data.status]).toEqual([200, "active"])
    expect((await anybody.get("/v1/emails", headers)).status).toBe(200)
    expect(refusal(await owner.post(`${path(project_id)}/restore`))).toEqual([409, "conflict"])
  })

  test("nothing works in it any more, for people either", async () => {
    const { owner, project_id, account_id } = await team(service)
    await owner.post("/v1/projects", { name: "Other" })
    await owner.remove(path(project_id), { confirm: "Default" })
    const there = { "x-account-id": account_id, "x-project-id": project_id }
    for (const [method, where, body] of [
      ["POST", "/v1/emails", mail()],
      ["GET", "/v1/emails", undefined],
      ["POST", "/v1/api-keys", { name: "k", scopes: ["*"] }],
      ["PATCH", "/v1/settings", { sandbox: true }],
      ["PATCH", path(project_id), { name: "Renamed" }],
      ["POST", `${path(project_id)}/members`, { user_id: owner.id, role: "viewer" }],
    ] as const) {
      const refused = await owner.call(method, where, { headers: there, ...(body && { body }) })
      expect(refusal(refused)).toEqual([404, "not_found"])
    }
    expect((await owner.get(path(project_id))).body.data.name).toBe("Default")
    expect((await owner.get(`/v1/usage?project_id=${project_id}`)).status).toBe(200)
  })

  test("its place may be taken meanwhile", async () => {
    const { owner, project_id } = await team(service, "starter")
    for (const name of ["b", "c"]) await owner.post("/v1/projects", { name })
    await owner.remove(path(project_id), { confirm: "Default" })
    expect((await owner.post("/v1/projects", { name: "d" })).status).toBe(201)
    const refused = await owner.post(`${path(project_id)}/restore`)
    expect(refusal(refused)).toEqual([403, "plan_limit_exceeded"])
    const [row] = await store.read.select().from(projects).where(eq(projects.id, project_id))
    expect(row?.status).toBe("deleting")
  })
})
