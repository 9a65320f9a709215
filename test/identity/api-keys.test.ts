import { describe, expect, test } from "bun:test"
import { isoFrom, millis } from "../../src/core/time"
import { complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { NOBODY } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService()
const KEY = /^svc_live_[0-9A-Za-z]{57}$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const wanted = (fields: Record<string, unknown> = {}) => ({
  name: "Deploy pipeline",
  scopes: ["email:send"],
  ...fields,
})

const use = (key: string, path = "/v1/emails") => service.anybody.get(path, { "x-api-key": key })

describe("a new key", () => {
  test("is shown once, and works at once", async () => {
    const project = await service.project()
    const { status, body } = await project.post("/v1/api-keys", wanted({ mode: "live" }))
    expect(status).toBe(201)
    const { key, ...record } = body.data
    expect(key).toMatch(KEY)
    expect(record).toEqual({
      id: expect.any(String),
      project_id: project.project_id,
      name: "Deploy pipeline",
      mode: "live",
      prefix: key.slice(0, 17),
      last4: key.slice(-4),
      scopes: ["email:send"],
      domain_id: null,
      status: "active",
      ip_addresses: [],
      expires_at: null,
      last_used_at: null,
      last_used_ip: null,
      created_by: { type: "key", id: project.key_id },
      created_at: expect.stringMatching(TIME),
      revoked_at: null,
    })
    expect(refusal(await use(key))).toEqual([403, "forbidden"])
    const { text, body: again } = await project.get(`/v1/api-keys/${record.id}`)
    expect({ ...again.data, last_used_at: null, last_used_ip: null }).toEqual(record)
    expect(text).not.toContain(key)
    expect((await project.get("/v1/api-keys")).text).not.toContain(key)
  })

  test("keeps what it was given", async () => {
    const project = await service.project()
    const expires_at = isoFrom(millis() + 3_600_000)
    const ip_addresses = ["192.0.2.7", "2001:db8::/32", "198.51.100.0/24"]
    const scopes = ["email:send", "email:read", "email:send"]
    const fields = { expires_at: expires_at.replace("Z", "+00:00"), ip_addresses, scopes }
    const { status, body } = await project.post("/v1/api-keys", wanted(fields))
    expect(status).toBe(201)
    expect(body.data).toMatchObject({ expires_at, ip_addresses, scopes: scopes.slice(0, 2) })
  })

  test.each(["a", "cCpP{}\\", "Übung ✓", "x".repeat(200)])("may be called %s", async (name) => {
    const project = await service.project()
    const { status, body } = await project.post("/v1/api-keys", wanted({ name }))
    expect([status, body.data.name]).toEqual([201, name])
  })

  test.each<[Record<string, unknown>, string]>([
    [{ name: undefined }, "name"],
    [{ name: "" }, "name"],
    [{ name: 5 }, "name"],
    [{ name: "x".repeat(201) }, "name"],
    [{ name: "a\nb" }, "name"],
    [{ name: "a\0b" }, "name"],
    [{ name: "a\u2028b" }, "name"],
    [{ mode: "test" }, "mode"],
    [{ mode: "other" }, "mode"],
    [{ scopes: undefined }, "scopes"],
    [{ scopes: [] }, "scopes"],
    [{ scopes: "email:send" }, "scopes"],
    [{ scopes: ["email:send", "email:fly"] }, "scopes.1"],
    [{ scopes: [5] }, "scopes.0"],
    [{ expires_at: "soon" }, "expires_at"],
    [{ expires_at: 5 }, "expires_at"],
    [{ expires_at: "2026-01-01T00:00:00Z" }, "expires_at"],
    [{ ip_addresses: "192.0.2.7" }, "ip_addresses"],
    [{ ip_addresses: ["nowhere"] }, "ip_addresses.0"],
    [{ ip_addresses: ["192.0.2.0/33"] }, "ip_addresses.0"],
    [{ ip_addresses: Array(101).fill("192.0.2.7") }, "ip_addresses"],
  ])("is refused: %j", async (fields, path) => {
    const project = await service.project()
    const refused = await project.post("/v1/api-keys", wanted(fields))
    expect([refused.status, complaints(refused)]).toEqual([422, [path]])
    expect((await project.get("/v1/api-keys")).body.meta.total).toBe(1)
  })

  test("of an unknown scope is told the nearest one", async () => {
    const project = await service.project()
    const { body } = await project.post("/v1/api-keys", wanted({ scopes: ["email:sned"] }))
    expect(body.error.message).toContain("The nearest is email:send.")
  })

  test("of mode test is pointed at the sandbox", async () => {
    const project = await service.project()
    const { body } = await project.post("/v1/api-keys", wanted({ mode: "test" }))
    expect(body.error.message).toContain("settings.sandbox")
  })

  test("has at most the scopes of the one who makes it", async () => {
    const project = await service.project({ scopes: ["api_keys:write", "email:send"] })
    for (const scopes of [["email:read"], ["email:send", "email:read"], ["*"]]) {
      const refused = await project.post("/v1/api-keys", wanted({ scopes }))
      expect(refusal(refused)).toEqual([403, "forbidden"])
      expect(refused.body.error.details).toEqual({ required_scope: scopes.at(-1) })
    }
    expect((await project.post("/v1/api-keys", wanted())).status).toBe(201)
  })
})

describe("the list", () => {
  test("has the newest first, by status and in pages", async () => {
    const project = await service.project()
    const expires_at = isoFrom(millis() + 60_000)
    const brief = (await project.post("/v1/api-keys", wanted({ name: "brief", expires_at }))).body
    const gone = (await project.post("/v1/api-keys", wanted({ name: "gone" }))).body
    await project.call("DELETE", `/v1/api-keys/${gone.data.id}`)
    clock.advance({ seconds: 60 })

    const names = async (query: string) => {
      const { body } = await project.get(`/v1/api-keys${query}`)
      const found = body.data.map((one: { name: string; status: string }) => one.name)
      return [body.meta.total, ...found]
    }
    expect(await names("")).toEqual([3, "gone", "brief", "test"])
    expect(await names("?status=active")).toEqual([1, "test"])
    expect(await names("?status=revoked")).toEqual([1, "gone"])
    expect(await names("?status=expired")).toEqual([1, "brief"])
    expect(await names("?per_page=2&page=2")).toEqual([3, "test"])
    expect((await project.get("/v1/api-keys?status=lost")).status).toBe(422)

    const { meta } = (await project.get("/v1/api-keys?per_page=1")).body
    const next = await project.get(`/v1/api-keys?per_page=1&cursor=${meta.next_cursor}`)
    expect(next.body.data[0]).toMatchObject({ id: brief.data.id, status: "expired" })
  })

  test("is the project's own", async () => {
    const [one, two] = [await service.project(), await service.project()]
    const ids = async ({ get }: typeof one) =>
      (await get("/v1/api-keys")).body.data.map(({ id }: { id: string }) => id)
    expect(await ids(one)).toEqual([one.key_id])
    expect(await ids(two)).toEqual([two.key_id])
  })
})

describe("revoking", () => {
  test("acts at once, and doing it again changes nothing", async () => {
    const project = await service.project()
    const { id, key } = await project.addKey()
    expect((await use(key)).status).toBe(200)
    const first = await project.call("DELETE", `/v1/api-keys/${id}`)
    expect(first.status).toBe(200)
    const { revoked_at } = first.body.data
    expect(first.body.data).toMatchObject({
      id,
      status: "revoked",
      deleted: true,
      revoked_at: expect.stringMatching(TIME),
    })
    expect(refusal(await use(key))).toEqual([401, "unauthorized"])
    clock.advance({ seconds: 5 })
    const again = await project.call("DELETE", `/v1/api-keys/${id}`)
    expect(again.body.data.revoked_at).toBe(revoked_at)
  })

  test("oneself is allowed, whatever else the key may do, and nobody else", async () => {
    for (const scopes of [["*"], ["email:read"]]) {
      const project = await service.project({ scopes })
      expect((await project.call("DELETE", `/v1/api-keys/${project.key_id}`)).status).toBe(200)
      expect((await project.get("/v1/api-keys")).status).toBe(401)
    }
    const project = await service.project({ scopes: ["email:read"] })
    const other = await project.addKey()
    const refused = await project.call("DELETE", `/v1/api-keys/${other.id}`)
    expect(refusal(refused)).toEqual([403, "forbidden"])
    expect(refusal(await project.call("PATCH", `/v1/api-keys/${project.key_id}`))[0]).toBe(403)
  })

  test("needs the scope, and a key that is there", async () => {
    const project = await service.project()
    const { key } = await project.addKey({ scopes: ["api_keys:read"] })
    const path = `/v1/api-keys/${project.key_id}`
    const refused = await service.anybody.call("DELETE", path, { headers: { "x-api-key": key } })
    expect(refusal(refused)).toEqual([403, "forbidden"])
    for (const id of [NOBODY, "x", "%00", "%F0%9F%98%80"]) {
      for (const method of ["GET", "DELETE"]) {
        const absent = await project.call(method, `/v1/api-keys/${id}`)
        expect(refusal(absent)).toEqual([404, "not_found"])
      }
    }
  })
})

test("the last use is remembered, within a minute", async () => {
  const project = await service.project()
  const { id, key } = await project.addKey()
  await use(key)
  let record = (await project.get(`/v1/api-keys/${id}`)).body.data
  while (record.last_used_at === null) {
    await Bun.sleep(5)
    record = (await project.get(`/v1/api-keys/${id}`)).body.data
  }
  expect(record).toMatchObject({
    last_used_at: expect.stringMatching(TIME),
    last_used_ip: "127.0.0.1",
  })
})
