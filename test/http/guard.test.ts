import { describe, expect, test } from "bun:test"
import { Type as t } from "@sinclair/typebox"
import { Elysia } from "elysia"
import { isoFrom, millis } from "../../src/core/time"
import { mountRoutes } from "../../src/http/request-handler"
import { route } from "../../src/http/route"
import { client, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService({ trusted_proxies: ["127.0.0.1", "10.0.0.0/8"] })

const malformed = '{"to": '
const incomplete = { subject: "no recipient" }
const send = "/v1/emails"

/** Size, credential, scope, JSON, schema, handler: whoever fails two of them hears of the first. */
test.each<[string, string, unknown, number, string]>([
  ["too large, without a key", "none", "x".repeat(15_728_641), 413, "payload_too_large"],
  ["without a key, malformed", "none", malformed, 401, "unauthorized"],
  ["without a key, incomplete", "none", incomplete, 401, "unauthorized"],
  ["without the scope, malformed", "reader", malformed, 403, "forbidden"],
  ["without the scope, incomplete", "reader", incomplete, 403, "forbidden"],
  ["malformed", "sender", malformed, 400, "invalid_json"],
  ["incomplete", "sender", incomplete, 422, "validation_error"],
])("%s is refused in its turn", async (_, who, body, status, code) => {
  const project = await service.project()
  const keys: Record<string, string> = {
    none: "",
    reader: (await project.addKey({ scopes: ["email:read"] })).key,
    sender: (await project.addKey({ scopes: ["email:send"] })).key,
  }
  const refused = await project.post(send, body, { "x-api-key": keys[who] ?? "" })
  expect(refusal(refused)).toEqual([status, code])
})

describe("a credential", () => {
  test.each([
    ["X-API-Key", (key: string) => ({ "x-api-key": key })],
    ["a bearer token", (key: string) => ({ authorization: `Bearer ${key}` })],
    ["bearer in any case", (key: string) => ({ authorization: `bearer ${key}` })],
    [
      "both, if they agree",
      (key: string) => ({ "x-api-key": key, authorization: `Bearer ${key}` }),
    ],
  ])("is taken from %s", async (_, headersOf) => {
    const { key } = await service.project()
    const { status } = await service.anybody.get("/v1/emails", headersOf(key))
    expect(status).toBe(200)
  })

  test("is none when it is absent, empty, of another kind or contradicts itself", async () => {
    const { key, addKey } = await service.project()
    const other = (await addKey()).key
    const bad: Record<string, string>[] = [
      {},
      { "x-api-key": "" },
      { "x-api-key": `${key}x` },
      { "x-api-key": key.slice(0, -1) },
      { "x-api-key": key.replace("svc_live_", "svc_test_") },
      { authorization: `Basic ${btoa(`api:${key}`)}` },
      { authorization: "Bearer" },
      { authorization: `Bearer ${key} ${key}` },
      { "x-api-key": key, authorization: `Bearer ${other}` },
      { "x-api-key": key, authorization: "Basic abc" },
    ]
    const texts = new Set<string>()
    for (const headers of bad) {
      const refused = await service.anybody.get("/v1/emails", headers)
      expect(refusal(refused)).toEqual([401, "unauthorized"])
      texts.add(refused.body.error.message)
    }
    expect(texts.size).toBe(1) // nothing to tell them apart by
  })

  test("of a key that is revoked or expired is refused at the next request", async () => {
    const project = await service.project()
    const expires_at = isoFrom(millis() + 60_000)
    const brief = await project.addKey({ expires_at })
    const use = () => service.anybody.get("/v1/emails", { "x-api-key": brief.key })
    expect((await use()).status).toBe(200)
    clock.advance({ seconds: 60 })
    expect(refusal(await use())).toEqual([401, "unauthorized"])

    expect((await project.call("DELETE", `/v1/api-keys/${project.key_id}`)).status).toBe(200)
    expect(refusal(await project.get("/v1/emails"))).toEqual([401, "unauthorized"])
  })
})

test("a missing scope is named, with the scopes that the key has", async () => {
  const project = await service.project({ scopes: ["email:send"] })
  for (const path of ["/v1/emails", "/v1/emails/x", "/v1/mailbox"]) {
    const refused = await project.get(path)
    expect(refusal(refused)).toEqual([403, "forbidden"])
    expect(refused.body.error.details).toEqual({
      required_scope: "email:read",
      granted_scopes: ["email:send"],
    })
  }
})

describe("an address list", () => {
  const from = (address: string) => ({ "x-forwarded-for": address })

  test("lets in who is on it, as IPv4, range, mapped and IPv6", async () => {
    const ip_addresses = ["192.0.2.7", "198.51.100.0/24", "2001:db8::/32"]
    const project = await service.project({ ip_addresses })
    for (const address of ["192.0.2.7", "::ffff:192.0.2.7", "198.51.100.250", "2001:db8::1"]) {
      expect((await project.get("/v1/emails", from(address))).status).toBe(200)
    }
    for (const address of ["192.0.2.8", "198.51.101.1", "2001:db9::1", "nonsense"]) {
      expect(refusal(await project.get("/v1/emails", from(address)))).toEqual([
        403,
        "ip_not_allowed",
      ])
    }
  })

  test("believes the right-most address that is no proxy of ours", async () => {
    const project = await service.project({ ip_addresses: ["192.0.2.7"] })
    const chain = (text: string) => project.get("/v1/emails", from(text))
    expect((await chain("203.0.113.9, 192.0.2.7, 10.1.2.3")).status).toBe(200)
    expect((await chain("192.0.2.7, 203.0.113.9, 10.1.2.3")).status).toBe(403)
  })
})

test.each([
  ["locked", "account_locked"],
  ["suspended", "account_suspended"],
] as const)("an account that is %s may do nothing", async (status, code) => {
  const project = await service.project({ status })
  expect(refusal(await project.get("/v1/emails"))).toEqual([403, code])
  expect(refusal(await project.post("/v1/emails", "{"))).toEqual([403, code])
})

test("an answer to a known caller tells whether he may send", async () => {
  const project = await service.project()
  for (const path of ["/v1/emails", "/v1/emails/unknown"]) {
    const { headers } = await project.get(path)
    expect(headers.get("x-account-sending-status")).toBe("active")
    expect(headers.has("x-account-sending-status-reason")).toBe(false)
  }
})

test("ids of another project answer as ids that nobody has", async () => {
  const [ours, theirs] = [await service.project(), await service.project()]
  const mail = { from: "a@example.test", to: "b@example.test", subject: "Secret", text: "Canary" }
  const { id } = (await theirs.post("/v1/emails", mail)).body
  const unknown = "01912345-0000-7000-8000-000000000000"

  const paths = [
    ["GET", ""],
    ["GET", "/events"],
    ["POST", "/events"],
    ["GET", "/content"],
    ["GET", "/raw"],
    ["GET", `/attachments/${unknown}`],
    ["GET", "/attempts"],
    ["POST", "/cancel"],
    ["POST", "/resend"],
  ]
  for (const [method = "", rest] of paths) {
    const answers = await Promise.all(
      [id, unknown, "no-uuid"].map((one) => ours.call(method, `/v1/emails/${one}${rest}`)),
    )
    const errors = answers.map(({ status, body }) => ({ status, error: body.error }))
    expect(errors[0]).toMatchObject({ status: 404, error: { code: "not_found", details: {} } })
    expect(errors).toEqual([errors[0], errors[0], errors[0]] as typeof errors)
  }
  const key = await theirs.addKey()
  for (const method of ["GET", "DELETE"]) {
    const foreign = await ours.call(method, `/v1/api-keys/${key.id}`)
    const absent = await ours.call(method, `/v1/api-keys/${unknown}`)
    expect(foreign.status).toBe(404)
    expect(foreign.body.error).toEqual(absent.body.error)
  }
})

test.each(["webhook-signature", "x-svc-signature"])(
  "a webhook delivery (%s) makes no call that could cause the next one",
  async (name) => {
    const project = await service.project()
    const signed = { [name]: "v1,x" }
    const made = await project.post("/v1/events/trigger", { type: "email.sent" }, signed)
    expect(refusal(made)).toEqual([403, "forbidden"])
    expect(made.body.error.details).toEqual({ reason: "webhook_loop" })
    expect((await project.get("/v1/events", signed)).body.data).toEqual([])
  },
)

test("a route for people is closed to every key", async () => {
  const { store, secrets, meter, verifyAccess } = service.parts
  const app = new Elysia()
  const rows = [
    { path: "/v1/a", scope: "-" },
    { path: "/v1/b", scope: "role:operator" },
  ].map((row) =>
    route({
      ...row,
      method: "GET",
      callers: ["console"],
      status: [200],
      summary: "For people",
      response: t.Object({}),
      handle: () => ({ data: {} }),
    }),
  )
  const requests = { add: () => {} }
  const traffic = { note: () => {} }
  const options = {
    store,
    secrets,
    meter,
    requests,
    traffic,
    verifyAccess,
    trusted_proxies: () => [],
    base_url: () => "",
  }
  const { workers, limits, inbox_tokens, applications } = service.parts
  mountRoutes(app, rows, {
    ...options,
    workers,
    limits,
    inbox_tokens,
    applications,
    health: { refuse: () => {} },
  })
  const { get } = client(app, (await service.project()).key)
  expect(refusal(await get("/v1/a"))).toEqual([403, "forbidden"])
  const refused = await get("/v1/b")
  expect(refusal(refused)).toEqual([403, "forbidden"])
  expect(refused.body.error.details).toEqual({ required_role: "operator" })
})
