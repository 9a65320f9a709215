import { describe, expect, test } from "bun:test"
import { isoFrom, millis, millisFrom } from "../../src/core/time"
import { SCOPES } from "../../src/identity/scopes"
import { complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { NOBODY } from "../harness/mail"
import { team } from "../harness/people"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService({ trusted_proxies: ["127.0.0.1"] })

const HOUR = 3600
const one = (id: string, rest = "") => `/v1/api-keys/${id}${rest}`
const from = (address: string) => ({ "x-forwarded-for": address })
const withKey = (key: string) => ({ "x-api-key": key })

describe("PATCH", () => {
  test("renames, narrows and sets an end", async () => {
    const project = await service.project()
    const { id, key } = await project.addKey({ scopes: ["email:send", "email:read"] })
    const expires_at = isoFrom(millis() + 60_000)
    const body = { name: "new name", scopes: ["email:read"], expires_at }
    const changed = await project.call("PATCH", one(id), { body })
    expect(changed.status).toBe(200)
    expect(changed.body.data).toMatchObject({ id, ...body, status: "active" })
    expect(changed.text).not.toContain(key.slice(20))
    expect((await service.anybody.get("/v1/emails", withKey(key))).status).toBe(200)
    const sending = await service.anybody.post("/v1/emails", {}, withKey(key))
    expect(refusal(sending)).toEqual([403, "forbidden"])

    const forever = await project.call("PATCH", one(id), { body: { expires_at: null } })
    expect(forever.body.data).toMatchObject({ expires_at: null, name: "new name" })
  })

  test("never widens, not even for a caller who may do everything", async () => {
    const project = await service.project()
    const { id } = await project.addKey({ scopes: ["email:read"] })
    for (const scopes of [["email:read", "email:send"], ["*"], ["sms:send"]]) {
      const refused = await project.call("PATCH", one(id), { body: { scopes } })
      expect(refusal(refused)).toEqual([403, "forbidden"])
    }
    const wide = await project.addKey({ scopes: ["*"] })
    const narrowed = await project.call("PATCH", one(wide.id), { body: { scopes: ["email:read"] } })
    expect(narrowed.body.data.scopes).toEqual(["email:read"])
    const back = await project.call("PATCH", one(wide.id), { body: { scopes: ["*"] } })
    expect(refusal(back)).toEqual([403, "forbidden"])
  })

  test("tells what is wrong, and refuses a key that is revoked or expired", async () => {
    const project = await service.project()
    const { id } = await project.addKey()
    const patch = (body: object) => project.call("PATCH", one(id), { body })
    const past = isoFrom(millis() - 1000)
    expect(complaints(await patch({ expires_at: past }))).toEqual(["expires_at"])
    expect(complaints(await patch({ scopes: [] }))).toEqual(["scopes"])
    expect(complaints(await patch({ scopes: ["email:fly"] }))).toEqual(["scopes.0"])
    expect(complaints(await patch({ name: "a\nb" }))).toEqual(["name"])
    await project.call("DELETE", one(id))
    expect(refusal(await patch({ name: "x" }))).toEqual([409, "conflict"])

    const brief = await project.addKey({ expires_at: isoFrom(millis() + 1000) })
    clock.advance({ seconds: 2 })
    const late = await project.call("PATCH", one(brief.id), { body: { expires_at: null } })
    expect(refusal(late)).toEqual([409, "conflict"])
  })
})

describe("rotation", () => {
  test("gives a new key and lets the old one work for the overlap", async () => {
    const project = await service.project()
    const old = await project.addKey({ scopes: ["email:read"], ip_addresses: ["127.0.0.1"] })
    const made = await project.post(one(old.id, "/rotate"), { overlap_hours: 2 })
    expect(made.status).toBe(201)
    const { id, key, scopes, ip_addresses, expires_at } = made.body.data
    expect(id).not.toBe(old.id)
    expect({ scopes, ip_addresses, expires_at }).toEqual({
      scopes: ["email:read"],
      ip_addresses: ["127.0.0.1"],
      expires_at: null,
    })
    const use = (text: string) => service.anybody.get("/v1/emails", withKey(text))
    expect([(await use(key)).status, (await use(old.key)).status]).toEqual([200, 200])
    clock.advance({ seconds: 2 * HOUR - 60 })
    expect((await use(old.key)).status).toBe(200)
    clock.advance({ seconds: 60 })
    expect([(await use(key)).status, (await use(old.key)).status]).toEqual([200, 401])
  })

  test("without overlap ends the old key at once; a day is the default", async () => {
    const project = await service.project()
    const [brief, long] = [await project.addKey(), await project.addKey()]
    await project.post(one(brief.id, "/rotate"), { overlap_hours: 0 })
    expect((await service.anybody.get("/v1/emails", withKey(brief.key))).status).toBe(401)
    await project.post(one(long.id, "/rotate"))
    const { expires_at } = (await project.get(one(long.id))).body.data
    const hours = (millisFrom(expires_at) - millis()) / 3_600_000
    expect(Math.round(hours)).toBe(24)
  })

  test("lets the new key live as long as the old one was meant to, and never lengthens the old", async () => {
    const project = await service.project()
    const old = await project.addKey({ expires_at: isoFrom(millis() + 10 * 3_600_000) })
    clock.advance({ seconds: 9 * HOUR })
    const { expires_at } = (await project.post(one(old.id, "/rotate"))).body.data
    expect(Math.round((millisFrom(expires_at) - millis()) / 3_600_000)).toBe(10)
    const left = (await project.get(one(old.id))).body.data.expires_at
    expect(Math.round((millisFrom(left) - millis()) / 3_600_000)).toBe(1)
  })

  test("happens once: the old key has a successor, which is told", async () => {
    const project = await service.project()
    const old = await project.addKey()
    const { id, key } = (await project.post(one(old.id, "/rotate"))).body.data
    const again = await project.post(one(old.id, "/rotate"))
    expect(refusal(again)).toEqual([409, "conflict"])
    expect(again.body.error.details).toEqual({ reason: "rotated", id })
    const next = await project.post(one(id, "/rotate"))
    expect([next.status, next.body.data.expires_at]).toEqual([201, null])
    expect((await service.anybody.get("/v1/emails", withKey(key))).status).toBe(200)
  })

  test("side by side makes one successor", async () => {
    const project = await service.project()
    const old = await project.addKey()
    const all = await Promise.all(
      Array.from({ length: 5 }, () => project.post(one(old.id, "/rotate"))),
    )
    const statuses = all.map(({ status }) => status).sort()
    expect(statuses).toEqual([201, 409, 409, 409, 409])
  })

  test("is repeated to the same key only, and refused for a dead key or a wrong overlap", async () => {
    const project = await service.project()
    const old = await project.addKey()
    const rotate = (headers = {}) =>
      project.post(one(old.id, "/rotate"), {}, { "idempotency-key": "again", ...headers })
    const [first, second] = [await rotate(), await rotate()]
    expect(second.body.data).toEqual(first.body.data)
    const stranger = await project.addKey({ scopes: ["api_keys:write"] })
    const other = await rotate(withKey(stranger.key))
    expect(other.text).not.toContain(first.body.data.key)
    expect(refusal(other)).toEqual([403, "forbidden"])

    for (const overlap_hours of [-1, 73, "1"]) {
      const refused = await project.post(one(old.id, "/rotate"), { overlap_hours })
      expect(complaints(refused)).toEqual(["overlap_hours"])
    }
    await project.call("DELETE", one(old.id))
    expect(refusal(await project.post(one(old.id, "/rotate")))).toEqual([409, "conflict"])
    expect((await project.post(one(NOBODY, "/rotate"))).status).toBe(404)
  })
})

describe("a key is only changed by callers that have every scope it has", () => {
  const changes: [string, string, string, object | undefined][] = [
    ["its name", "PATCH", "", { name: "renamed" }],
    ["its scopes", "PATCH", "", { scopes: ["email:read"] }],
    ["its end", "PATCH", "", { expires_at: null }],
    ["its allowlist", "PUT", "/ip-whitelist", { ip_addresses: [] }],
    ["its secret", "POST", "/rotate", {}],
    ["whether it works", "DELETE", "", undefined],
  ]
  const broad = () => ({
    scopes: ["email:send", "email:read"],
    ip_addresses: ["192.0.2.1"],
    expires_at: isoFrom(millis() + 60_000),
  })

  test.each(changes)("%s: a narrower key is refused", async (_, method, rest, body) => {
    const project = await service.project()
    const { id } = await project.addKey(broad())
    const before = (await project.get(one(id))).body.data
    const narrow = await project.addKey({ scopes: ["api_keys:write", "email:read"] })
    const ask = { ...(body && { body }), headers: withKey(narrow.key) }
    const refused = await service.anybody.call(method, one(id, rest), ask)
    expect(refusal(refused)).toEqual([403, "forbidden"])
    expect(refused.body.error.details).toEqual({ required_scope: "email:send" })
    expect((await project.get(one(id))).body.data).toEqual(before)
    expect((await project.get("/v1/api-keys")).body.meta.total).toBe(3)
  })

  test.each(changes)("%s: a key with the same scopes may", async (_, method, rest, body) => {
    const project = await service.project()
    const { id } = await project.addKey(broad())
    const scopes = ["api_keys:write", "email:read", "email:send"]
    const { key } = await project.addKey({ scopes })
    const ask = { ...(body && { body }), headers: withKey(key) }
    expect((await service.anybody.call(method, one(id, rest), ask)).status).toBeLessThan(300)
  })

  test("a whole key is changed by whole keys alone", async () => {
    const project = await service.project()
    const all = SCOPES.filter((scope) => scope !== "*")
    const nearly = await project.addKey({ scopes: [...all] })
    const revoked = await project.call("DELETE", one(project.key_id), {
      headers: withKey(nearly.key),
    })
    expect(revoked.body.error.details).toEqual({ required_scope: "*" })
    const own = await project.call("DELETE", one(nearly.id), { headers: withKey(nearly.key) })
    expect(own.body.data).toMatchObject({ status: "revoked", deleted: true })
  })

  test("a revoked key is told to be revoked only to callers that may change it", async () => {
    const project = await service.project()
    const { id } = await project.addKey(broad())
    await project.call("DELETE", one(id))
    const narrow = await project.addKey({ scopes: ["api_keys:write"] })
    const ask = { body: { name: "x" }, headers: withKey(narrow.key) }
    expect(refusal(await project.call("PATCH", one(id), ask))).toEqual([403, "forbidden"])
    const again = await project.call("DELETE", one(id), { headers: withKey(narrow.key) })
    expect(refusal(again)).toEqual([403, "forbidden"])
  })
})

describe("the allowlist", () => {
  const put = (project: Awaited<ReturnType<typeof service.project>>, id: string, list: unknown) =>
    project.call("PUT", one(id, "/ip-whitelist"), { body: { ip_addresses: list } })

  test("is replaced, acts at the next request, and is cleared by an empty one", async () => {
    const project = await service.project()
    const { id, key } = await project.addKey()
    const use = (address: string) =>
      service.anybody.get("/v1/emails", { ...withKey(key), ...from(address) })
    expect((await use("203.0.113.9")).status).toBe(200)
    expect((await put(project, id, ["192.0.2.0/24", "2001:db8::/32"])).status).toBe(200)
    expect(refusal(await use("203.0.113.9"))).toEqual([403, "ip_not_allowed"])
    expect((await use("192.0.2.9")).status).toBe(200)
    expect((await put(project, id, [])).body.data.ip_addresses).toEqual([])
    expect((await use("203.0.113.9")).status).toBe(200)
  })

  test.each([
    "",
    "localhost",
    "192.0.2.1/33",
    "192.0.2",
    "192.0.2.1/08",
    "192.0.2.1/-1",
    "192.0.2.1/8/8",
    "010.0.0.1/8",
    "0x7f.0.0.1",
    "127.1",
    "2130706433",
    "::ffff:192.0.2.1/90",
    "fe80::1%eth0",
    "fe80::1%eth0/64",
    " 192.0.2.1",
    "2001:db8::/129",
    "*",
  ])("%j is no address of a list", async (range) => {
    const project = await service.project()
    const refused = await put(project, project.key_id, ["192.0.2.1", range])
    expect(complaints(refused)).toEqual(["ip_addresses.1"])
  })

  test("has at most 100 entries", async () => {
    const project = await service.project()
    const list = (count: number) => Array.from({ length: count }, (_, at) => `192.0.2.${at}`)
    expect((await put(project, project.key_id, list(101))).status).toBe(422)
    expect((await put(project, project.key_id, [...list(99), "127.0.0.1"])).status).toBe(200)
  })
})

describe("nobody makes a key that may do more than he", () => {
  const wanted = { name: "child", scopes: ["email:read"] }

  test.each([
    [["api_keys:write"], ["email:send"]],
    [
      ["api_keys:write", "email:read"],
      ["email:read", "email:send"],
    ],
    [["api_keys:write", "email:read"], ["*"]],
    [["api_keys:write"], ["api_keys:read"]],
  ])("with scopes: %j makes no %j", async (own, scopes) => {
    const project = await service.project({ scopes: own })
    const refused = await project.post("/v1/api-keys", { ...wanted, scopes })
    expect(refusal(refused)).toEqual([403, "forbidden"])
  })

  test("by rotating a wider key, whose new secret he would learn", async () => {
    const project = await service.project({ scopes: ["api_keys:write"] })
    const wide = await project.addKey({ scopes: ["*"] })
    const refused = await project.post(one(wide.id, "/rotate"))
    expect(refusal(refused)).toEqual([403, "forbidden"])
    expect(refused.text).not.toContain("svc_live_")
  })

  test("with addresses: a key bound to some makes none for others", async () => {
    const ip_addresses = ["127.0.0.0/8", "192.0.2.0/24"]
    const project = await service.project({ ip_addresses })
    const make = (list?: string[]) =>
      project.post("/v1/api-keys", { ...wanted, ...(list && { ip_addresses: list }) })
    expect((await make()).body.data.ip_addresses).toEqual(ip_addresses)
    expect((await make(["192.0.2.7"])).status).toBe(201)
    expect((await make(["192.0.2.128/25", "127.0.0.1"])).status).toBe(201)
    for (const list of [[], ["0.0.0.0/0"], ["192.0.2.0/23"], ["192.0.2.1", "::/0"], ["10.0.0.1"]]) {
      expect(refusal(await make(list))).toEqual([403, "forbidden"])
    }
    const own = await project.call("PUT", one(project.key_id, "/ip-whitelist"), {
      body: { ip_addresses: [] },
    })
    expect(refusal(own)).toEqual([403, "forbidden"])
    const free = await project.addKey()
    expect(refusal(await project.post(one(free.id, "/rotate")))).toEqual([403, "forbidden"])
  })

  test("with an end: a key that ends makes none that outlives it, itself included", async () => {
    const own = isoFrom(millis() + 60_000)
    const project = await service.project({ expires_at: own })
    const make = (fields: object) => project.post("/v1/api-keys", { ...wanted, ...fields })
    expect((await make({})).body.data.expires_at).toBe(own)
    expect((await make({ expires_at: own })).status).toBe(201)
    const sooner = isoFrom(millis() + 30_000)
    expect((await make({ expires_at: sooner })).body.data.expires_at).toBe(sooner)
    const plain = await project.addKey()
    for (const expires_at of [null, isoFrom(millis() + 61_000)]) {
      expect(complaints(await make({ expires_at }))).toEqual(["expires_at"])
      for (const id of [project.key_id, plain.id]) {
        const lifted = await project.call("PATCH", one(id), { body: { expires_at } })
        expect(complaints(lifted)).toEqual(["expires_at"])
      }
    }
    const renamed = await project.call("PATCH", one(plain.id), { body: { name: "renamed" } })
    expect([renamed.status, renamed.body.data.expires_at]).toEqual([200, null])
  })

  test("with an end, by rotating: the new key ends with the one that asks", async () => {
    const own = isoFrom(millis() + 3_600_000)
    const project = await service.project({ expires_at: own })
    clock.advance({ seconds: 60 })
    for (const { id } of [{ id: project.key_id }, await project.addKey()]) {
      const made = await project.post(one(id, "/rotate"), { overlap_hours: 2 })
      expect([made.status, made.body.data.expires_at]).toEqual([201, own])
    }
  })

  test("nor does a person: admins of a project make any, developers none", async () => {
    const { owner, account_id, project_id } = await team(service)
    const made = await owner.post("/v1/api-keys", { ...wanted, scopes: ["*"] })
    expect(made.status).toBe(201)
    expect(made.body.data).toMatchObject({ project_id, created_by: { type: "user", id: owner.id } })
    const used = await service.anybody.get("/v1/emails", withKey(made.body.data.key))
    expect(used.status).toBe(200)
    expect(account_id).not.toBe(project_id)
  })
})

test("what was done to keys is in the audit log, without a secret", async () => {
  const { owner } = await team(service)
  const made = await owner.post("/v1/api-keys", { name: "audited", scopes: ["*"] })
  const { id, key } = made.body.data
  const rotated = await owner.post(one(id, "/rotate"), { overlap_hours: 1 })
  await owner.call("PUT", one(id, "/ip-whitelist"), { body: { ip_addresses: ["192.0.2.1"] } })
  await owner.call("PATCH", one(id), { body: { name: "renamed" } })
  await owner.call("DELETE", one(id))
  const log = await owner.get("/v1/audit-log?per_page=100")
  const actions = log.body.data
    .filter(({ target }: { target: { id: string } }) => target.id === id)
    .map(({ action }: { action: string }) => action)
  expect(actions.reverse()).toEqual([
    "api_key.created",
    "api_key.rotated",
    "api_key.allowlist_changed",
    "api_key.updated",
    "api_key.revoked",
  ])
  for (const text of [key, rotated.body.data.key]) {
    expect(log.text).not.toContain(text.slice(17))
    expect(log.text).not.toContain(new Bun.CryptoHasher("sha256").update(text).digest("hex"))
  }
})
