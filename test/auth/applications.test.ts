import { describe, expect, test } from "bun:test"
import { eq, like, or } from "drizzle-orm"
import { auditLog } from "../../src/audit-log/tables"
import { insertUser } from "../../src/auth/end-users"
import { type AuthEnvironment, environmentNamed } from "../../src/auth/environments"
import { memberships, organizations } from "../../src/auth/organizations/tables"
import { removeApplication } from "../../src/auth/removed-applications"
import { applicationKeys, applications, environments, users } from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import { jobs } from "../../src/jobs/tables"
import { signingKeys } from "../../src/signing-keys/tables"
import { bump, total } from "../../src/store/counters"
import { counters } from "../../src/store/tables"
import { newApplication } from "../harness/application"
import { complaints, refusal } from "../harness/client"
import { team } from "../harness/people"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store, anybody } = service

const ALL = "/v1/auth/applications"

async function made(project: Pick<TestProject, "post">, fields: object = {}) {
  const { status, body, text } = await project.post(ALL, { name: "Shop", ...fields })
  if (status !== 201) throw new Error(text)
  return body.data
}

const environmentOf = async (id: string, name = "live"): Promise<AuthEnvironment> => {
  const found = await environmentNamed(store.read, id, name)
  if (!found) throw new Error("the application is gone")
  return found
}

describe("a new application", () => {
  test("has both environments, a public key each, and a secret that is shown once", async () => {
    const project = await service.project()
    const { secret_key, ...shop } = await made(project, { name: "Große Küche" })
    const { account_id, project_id } = project
    const [live, testing] = [shop.public_keys.live, shop.public_keys.test]
    expect(shop).toEqual({
      ...{ id: expect.any(String), account_id, project_id, name: "Große Küche" },
      ...{ slug: "grosse-kuche", type: "web", logo_url: null, public_key: live },
      public_keys: {
        live: expect.stringMatching(/^svca_live_pub_[\w-]{32}$/),
        test: expect.stringMatching(/^svca_test_pub_[\w-]{32}$/),
      },
      ...{ legacy_public_key: null, session_duration_minutes: 60, refresh_token_duration_days: 30 },
      ...{ allowed_origins: [], redirect_urls: [] },
      environments: [
        { name: "live", status: "active", users: 0 },
        { name: "test", status: "active", users: 0 },
      ],
      ...{ created_at: expect.any(String), updated_at: shop.created_at },
    })
    expect(live).not.toBe(testing)
    expect(secret_key).toMatch(/^svca_sec_[\w-]{43}$/)
    const read = await project.get(`${ALL}/${shop.id}`)
    expect(read.body.data).toEqual(shop)
    expect((await project.get(ALL)).body).toMatchObject({ data: [shop], meta: { total: 1 } })
    for (const name of ["live", "test"]) {
      const { id, default_organization_id } = await environmentOf(shop.id, name)
      const mine = eq(organizations.environment_id, id)
      const [own] = await store.read.select().from(organizations).where(mine)
      expect(own).toMatchObject({ id: default_organization_id, name: "Default", slug: "default" })
    }
    expect(await total(store.read, project_id, "applications")).toBe(1)
  })

  test("is repeated with its secret for the same Idempotency-Key, and never logged with it", async () => {
    const project = await service.project()
    const key = { "idempotency-key": "once" }
    const answers = [1, 2].map(() => project.post(ALL, { name: "Shop" }, key))
    const [one, other] = (await Promise.all(answers)).filter(({ status }) => status === 201)
    const again = await project.post(ALL, { name: "Shop" }, key)
    expect(again.body.data).toEqual((one ?? other)?.body.data)
    const rows = await store.read.select().from(auditLog).where(like(auditLog.action, "applic%"))
    expect(rows.length).toBeGreaterThan(0)
    expect(JSON.stringify(rows)).not.toMatch(/secret|svca_/)
  })

  test("needs a slug of its own in the project, a name and numbers in their range", async () => {
    const project = await service.project()
    const { slug } = await made(project)
    expect((await made(project)).slug).toMatch(/^shop-[0-9a-f]{8}$/)
    const taken = await project.post(ALL, { name: "Other", slug })
    expect(refusal(taken)).toEqual([409, "conflict"])
    expect((await made(await service.project(), { slug })).slug).toBe(slug)
    const bad = {
      ...{ name: "", slug: "A b", type: "desktop", session_duration_minutes: 1441 },
      ...{ refresh_token_duration_days: 0 },
    }
    expect(complaints(await project.post(ALL, bad)).sort()).toEqual(Object.keys(bad).sort())
    for (const field of ["allowed_origins", "redirect_urls"]) {
      const wrong = await project.post(ALL, { name: "x", [field]: ["https://*.example.com"] })
      expect(refusal(wrong)).toEqual([422, "invalid_url"])
      expect(complaints(wrong)).toEqual([`${field}.0`])
    }
  })

  test("is one of a hundred at most", async () => {
    const project = await service.project()
    await store.tx((tx) => bump(tx, project.project_id, "applications", 100))
    expect((await project.post(ALL, { name: "x" })).body.error.details.reason).toBe("too_many")
  })
})

describe("an application that is there", () => {
  test("changes what is given, and only that", async () => {
    const project = await service.project()
    const { id, secret_key: _, ...before } = await made(project)
    const changes = { name: "Café", slug: "cafe", logo_url: "https://example.com/logo.png" }
    const changed = await project.call("PATCH", `${ALL}/${id}`, { body: changes })
    const { updated_at } = changed.body.data
    expect(changed.body.data).toEqual({ ...before, id, ...changes, updated_at })
    const other = await made(project)
    const taken = await project.call("PATCH", `${ALL}/${other.id}`, { body: { slug: "cafe" } })
    expect(refusal(taken)).toEqual([409, "conflict"])
    const logo = await project.call("PATCH", `${ALL}/${id}`, { body: { logo_url: "http://x.y" } })
    expect(refusal(logo)).toEqual([422, "invalid_url"])
    const native = { type: "native", redirect_urls: ["com.example.shop:/signed-in"] }
    expect((await project.call("PATCH", `${ALL}/${id}`, { body: native })).status).toBe(200)
    const web = await project.call("PATCH", `${ALL}/${id}`, { body: { type: "web" } })
    expect(complaints(web)).toEqual(["redirect_urls.0"])
  })

  test("is nobody's of another project, and needs the scope", async () => {
    const [ours, theirs] = [await service.project(), await service.project()]
    const { id } = await made(ours)
    const one = `${ALL}/${id}`
    for (const [method, path, body] of [
      ["GET", one],
      ["PATCH", one, { name: "x" }],
      ["POST", `${one}/rotate-secret`, {}],
      ["GET", `${one}/environments`],
      ["GET", `${one}/environments/live`],
      ["PATCH", `${one}/environments/live`, { hide_account_existence: true }],
      ["GET", `${one}/keys`],
      ["POST", `${one}/keys`, { environment: "live", name: "x" }],
      ["DELETE", `${one}/keys/${id}`],
    ] as const) {
      const answer = await theirs.call(method, path, { ...(body && { body }) })
      expect([method, path, ...refusal(answer)]).toEqual([method, path, 404, "not_found"])
    }
    const { key } = await ours.addKey({ scopes: ["auth:read"] })
    const refused = await ours.call("PATCH", one, { body: {}, headers: { "x-api-key": key } })
    expect(refused.body.error.details.required_scope).toBe("auth:write")
  })

  test("gets a new secret, and the old one an end", async () => {
    const project = await service.project()
    const { id, secret_key } = await made(project)
    const rotate = (body: object) => project.post(`${ALL}/${id}/rotate-secret`, body)
    expect(complaints(await rotate({ overlap_hours: 73 }))).toEqual(["overlap_hours"])
    const { status, body } = await rotate({ overlap_hours: 1 })
    expect(status).toBe(200)
    expect(body.data.secret_key).not.toBe(secret_key)
    const [row] = await store.read.select().from(applications).where(eq(applications.id, id))
    expect(row?.previous_expires_at).toBe(body.data.previous_expires_at)
  })

  test("counts its users by environment", async () => {
    const project = await service.project()
    const { id } = await made(project)
    const live = await environmentOf(id)
    await store.tx((tx) => insertUser(tx, live, { email: "ann@example.com" }))
    const { body } = await project.get(`${ALL}/${id}`)
    expect(body.data.environments.map(({ users }: { users: number }) => users)).toEqual([1, 0])
  })
})

describe("keys of an application", () => {
  test("are made for an environment, or one without", async () => {
    const project = await service.project()
    const { id } = await made(project)
    const path = `${ALL}/${id}/keys`
    const key = await project.post(path, { environment: "test", name: "App" })
    expect(key.status).toBe(201)
    expect(key.body.data).toMatchObject({ environment: "test", status: "active", name: "App" })
    const legacy = await project.post(path, { legacy: true, name: "Old" })
    expect(legacy.body.data).toMatchObject({
      environment: null,
      key: expect.stringMatching(/^svca_pub_/),
    })
    expect(refusal(await project.post(path, { legacy: true, name: "Again" }))).toEqual([
      409,
      "conflict",
    ])
    for (const body of [{ name: "x" }, { name: "x", legacy: true, environment: "live" }])
      expect(complaints(await project.post(path, body))).toEqual(["environment"])
    const { data } = (await project.get(path)).body
    expect(data).toHaveLength(4)
    expect((await project.get(`${ALL}/${id}`)).body.data).toMatchObject({
      legacy_public_key: legacy.body.data.key,
      public_keys: { test: key.body.data.key },
    })
  })

  test("go one by one, and the last of an environment by force", async () => {
    const project = await service.project()
    const { id } = await made(project)
    const path = `${ALL}/${id}/keys`
    const [{ id: last, environment }] = (await project.get(path)).body.data
    const remove = (key: string, more = "") => project.call("DELETE", `${path}/${key}${more}`)
    expect(refusal(await remove(last))).toEqual([409, "conflict"])
    const other = await project.post(path, { environment, name: "Second" })
    expect((await remove(last)).body.data).toEqual({ id: last, deleted: true })
    expect(refusal(await remove(last))).toEqual([404, "not_found"])
    expect(refusal(await remove(other.body.data.id))).toEqual([409, "conflict"])
    expect((await remove(other.body.data.id, "?force=true")).status).toBe(200)
    const neighbour = await made(project)
    const [theirs] = (await project.get(`${ALL}/${neighbour.id}/keys`)).body.data
    expect(refusal(await remove(theirs.id, "?force=true"))).toEqual([404, "not_found"])
  })
})

describe("what verifiers of tokens ask", () => {
  test("is there from the beginning, without an envelope or a credential", async () => {
    const { id } = await made(await service.project())
    const keys = await anybody.get(`${ALL}/${id}/jwks.json`)
    expect(keys.body).toEqual({
      keys: [
        {
          ...{ kty: "EC", crv: "P-256", alg: "ES256", use: "sig", kid: expect.any(String) },
          ...{ x: expect.any(String), y: expect.any(String) },
        },
      ],
    })
    const found = await anybody.get(`${ALL}/${id}/.well-known/openid-configuration`)
    const issuer = `http://belfry.test${ALL}/${id}`
    expect(found.body).toEqual({
      ...{ issuer, jwks_uri: `${issuer}/jwks.json`, authorization_endpoint: issuer },
      id_token_signing_alg_values_supported: ["ES256"],
      response_types_supported: ["id_token"],
      subject_types_supported: ["public"],
    })
    for (const { headers } of [keys, found])
      expect(headers.get("cache-control")).toBe("public, max-age=300")
    for (const wrong of ["x", newId()])
      expect(refusal(await anybody.get(`${ALL}/${wrong}/jwks.json`))).toEqual([404, "not_found"])
  })
})

describe("an application that is deleted", () => {
  const removed = async () => {
    const people = await team(service)
    const { owner, project_id } = people
    const home = { "x-project-id": project_id }
    const { id, slug } = (await owner.post(ALL, { name: "Shop" }, home)).body.data
    const remove = (confirm: string) =>
      owner.call("DELETE", `${ALL}/${id}`, { body: { confirm }, headers: home })
    return { ...people, home, id, slug, remove }
  }

  test("needs its slug, and a person", async () => {
    const { id, remove, ...ours } = await removed()
    expect(complaints(await remove("other"))).toEqual(["confirm"])
    const project = await service.project()
    const shop = await made(project)
    const byKey = await project.call("DELETE", `${ALL}/${shop.id}`, {
      body: { confirm: shop.slug },
    })
    expect(byKey.status).toBe(403)
    expect((await remove(ours.slug)).body.data).toEqual({ id, deleted: true })
    expect(refusal(await remove(ours.slug))).toEqual([404, "not_found"])
  })

  test("answers nothing from then on, and its rows go in the background", async () => {
    const { owner, home, project_id, id, slug, remove } = await removed()
    const live = await environmentOf(id)
    for (let n = 0; n < 120; n++)
      await store.tx((tx) => insertUser(tx, live, { email: `u${n}@example.com` }))
    expect((await remove(slug)).status).toBe(200)
    for (const path of ["", "/environments", "/keys", "/jwks.json"])
      expect((await owner.get(`${ALL}/${id}${path}`, home)).status).toBe(404)
    expect(await environmentNamed(store.read, id, "live")).toBeUndefined()
    expect((await owner.get(ALL, home)).body).toMatchObject({ data: [], meta: { total: 0 } })
    expect((await owner.post(ALL, { name: "Again", slug }, home)).status).toBe(201)

    const [job] = await store.read.select().from(jobs).where(eq(jobs.name, "application.deleted"))
    const payload = { id }
    await removeApplication(store).run(payload, job as never)
    await removeApplication(store).run(payload, job as never)
    const mine = eq(users.project_id, project_id)
    expect(await store.read.select().from(users).where(mine)).toEqual([])
    for (const rows of [environments, organizations, applicationKeys, signingKeys]) {
      const left = await store.read.select().from(rows).where(eq(rows.application_id, id))
      expect(left).toEqual([])
    }
    const seats = eq(memberships.project_id, project_id)
    expect(await store.read.select().from(memberships).where(seats)).toEqual([])
    for (const [name, left] of [
      ["users", 0],
      [`users.environment_id.${live.id}`, 0],
      ["applications", 1],
    ] as const)
      expect([name, await total(store.read, project_id, name)]).toEqual([name, left])
    const its = [live.id, live.default_organization_id].map((one) =>
      like(counters.name, `%${one}%`),
    )
    expect(
      await store.read
        .select()
        .from(counters)
        .where(or(...its)),
    ).toEqual([])
  })

  test("is kept while it is not deleted, whatever a job says", async () => {
    const project = await service.project()
    const { id } = await newApplication(service, project)
    await removeApplication(store).run({ id }, {} as never)
    expect((await project.get(`${ALL}/${id}`)).status).toBe(200)
  })
})
