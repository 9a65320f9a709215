import { beforeAll, describe, expect, test } from "bun:test"
import { recentLines } from "../../src/core/log"
import type { EmailProvider } from "../../src/emails/providers/provider"
import { DeferredError } from "../../src/jobs/work-item"
import { smtpSink } from "../fakes/smtp-sink"
import { atRest } from "../harness/at-rest"
import { NOBODY } from "../harness/mail"
import { type Team, team } from "../harness/people"
import { nobody } from "../harness/providers"
import { testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const ALL = "/v1/providers/email_provider/config"
const SECRET = "horse-battery-staple-9431"
const relay = { host: "127.0.0.1", port: 2525, username: "belfry", password: SECRET, tls: "none" }
const SES = {
  region: "eu-west-1",
  access_key_id: "AKIDEXAMPLE0000WXYZ",
  secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
}

let home: Team

beforeAll(async () => {
  home = await team(service)
})

const here = ({ account_id, project_id }: Team) => ({
  "x-account-id": account_id,
  "x-project-id": project_id,
})

const make = async (body: object, whose = home) =>
  (await whose.owner.post(ALL, { provider: "smtp", ...body }, here(whose))).body.data

describe("configuring a provider", () => {
  test("answers 201 with masked secrets, and 200 when the same name is replaced", async () => {
    const wanted = { provider: "smtp", name: "main", credentials: relay }
    const made = await home.owner.post(ALL, wanted, here(home))
    expect(made.status).toBe(201)
    expect(made.body.data).toMatchObject({
      kind: "email_provider",
      provider: "smtp",
      name: "main",
      priority: 100,
      enabled: true,
      status: "active",
      last_error: null,
      credentials: { ...relay, password: "****9431" },
      settings: {},
      callback_url: null,
    })
    const again = await home.owner.post(ALL, { ...wanted, priority: 7 }, here(home))
    expect([again.status, again.body.data.id]).toEqual([200, made.body.data.id])
    expect(again.body.data.priority).toBe(7)
  })

  test("of SES gives the address for its notifications, the same every time", async () => {
    const { id, callback_url, credentials } = await make({ provider: "ses", credentials: SES })
    expect(callback_url).toMatch(/^http:\/\/belfry\.test\/v1\/callbacks\/email\/ses\/[\w-]{43}$/)
    expect(credentials).toEqual({
      region: "eu-west-1",
      access_key_id: "****WXYZ",
      secret_access_key: "****EKEY",
    })
    const { body } = await home.owner.get(`${ALL}/${id}`, here(home))
    expect(body.data.callback_url).toBe(callback_url)
  })

  test("an Idempotency-Key repeats the answer and makes one", async () => {
    const wanted = { provider: "smtp", name: "once", credentials: relay }
    const headers = { ...here(home), "idempotency-key": "one" }
    const first = await home.owner.post(ALL, wanted, headers)
    const second = await home.owner.post(ALL, wanted, headers)
    expect([first.status, second.status]).toEqual([201, 201])
    expect(second.body.data).toEqual(first.body.data)
  })

  test("the address for callbacks is nowhere in clear at rest, not even in a kept answer", async () => {
    const wanted = { provider: "ses", name: "kept", credentials: SES }
    const made = await home.owner.post(ALL, wanted, { ...here(home), "idempotency-key": "kept" })
    const token = made.body.data.callback_url.split("/").at(-1)
    expect(token).toHaveLength(43)
    expect(await atRest(service)).not.toContain(token)
  })

  test.each<[string, object, string, string]>([
    ["an unknown provider", { provider: "pigeon" }, "validation_error", "provider"],
    ["no host", { credentials: { ...relay, host: undefined } }, "", "credentials.host"],
    [
      "half a login",
      { credentials: { ...relay, password: undefined } },
      "",
      "credentials.password",
    ],
    ["an odd port", { credentials: { ...relay, port: 0 } }, "validation_error", "credentials.port"],
    ["another tls", { credentials: { ...relay, tls: "ssl" } }, "validation_error", ""],
    ["a name of two lines", { name: "a\nb", credentials: relay }, "validation_error", "name"],
    ["no pace at all", { credentials: relay, settings: { max_per_second: 0 } }, "", ""],
    ["next to none", { credentials: relay, settings: { max_per_second: 0.001 } }, "", ""],
    [
      "what no SPF record may have",
      { credentials: relay, settings: { spf: ["a:h.test", "ip4:999.1.1.1"] } },
      "validation_error",
      "settings.spf.1",
    ],
    [
      "what is shown of a password instead of it",
      { credentials: { ...relay, password: "****9431" } },
      "validation_error",
      "credentials.password",
    ],
    ["an odd region", { provider: "ses", credentials: { ...SES, region: "x" } }, "", ""],
    ["a private host", { credentials: { ...relay, host: "10.0.0.1" } }, "invalid_url", ""],
    ["the metadata address", { credentials: { ...relay, host: "169.254.169.254" } }, "", ""],
  ])("with %s is 422", async (_, fields, code, path) => {
    const { status, body } = await home.owner.post(ALL, { provider: "smtp", ...fields }, here(home))
    expect(status).toBe(422)
    if (code) expect(body.error.code).toBe(code)
    expect(JSON.stringify(body.error)).toContain(path)
    expect(JSON.stringify(body)).not.toContain(SECRET)
  })

  test("stays in its project, whatever a body names beside the fields of the schema", async () => {
    const other = await team(service)
    const foreign = { project_id: other.project_id, account_id: other.account_id }
    const { id } = await make({ name: "stays", credentials: relay, ...foreign })
    const at = { headers: here(home), body: { priority: 9, ...foreign } }
    const { status, body } = await home.owner.call("PATCH", `${ALL}/${id}`, at)
    expect([status, body.data.priority]).toEqual([200, 9])
    expect(
      (await other.owner.call("GET", "/v1/providers", { headers: here(other) })).body.data,
    ).toEqual([])
    const kept = await home.owner.call("GET", `${ALL}/${id}`, { headers: here(home) })
    expect(kept.status).toBe(200)
  })

  test("of texts says in words what a sender and a country prefix are", async () => {
    const wanted = { provider: "log", settings: { from: "a\nb", allowed_countries: ["43"] } }
    const { body } = await home.owner.post("/v1/providers/sms_provider/config", wanted, here(home))
    const why = body.error.details.fields.map(({ message }: { message: string }) => message)
    expect(why).toEqual([
      "The value must be one line without control characters.",
      "The value must be a country prefix, such as +43.",
    ])
  })

  test("an unknown kind is 404, one that is not built yet 422", async () => {
    const wanted = { provider: "twilio", credentials: { token: SECRET } }
    const { owner } = home
    const pigeon = await owner.post("/v1/providers/pigeon/config", wanted, here(home))
    expect([pigeon.status, pigeon.body.error.code]).toEqual([404, "not_found"])
    const path = "/v1/providers/pigeon/config/x"
    const empty = { body: {}, headers: here(home) }
    for (const [method, at] of [
      ["POST", "/v1/providers/pigeon/config"],
      ["GET", path],
      ["PATCH", path],
      ["DELETE", path],
      ["POST", `${path}/test`],
    ] as const) {
      const { status, body } = await owner.call(method, at, method === "GET" ? {} : empty)
      expect([status, body.error.message]).toEqual([404, `There is no ${at}.`])
    }
    for (const kind of ["sms_provider", "push_provider"]) {
      const answer = await owner.post(`/v1/providers/${kind}/config`, wanted, here(home))
      expect([answer.status, answer.body.error.code]).toEqual([422, "validation_error"])
    }
  })

  test("is refused to API keys, which may read", async () => {
    const project = await service.project()
    const refused = await project.call("POST", ALL, { body: { provider: "direct" } })
    expect([refused.status, refused.body.error.code]).toEqual([403, "forbidden"])
    expect((await project.call("GET", "/v1/providers")).status).toBe(200)
  })
})

test("a project has twenty of one kind at most, and may still replace one", async () => {
  const own = await team(service)
  const named = (name: string) =>
    own.owner.post(ALL, { provider: "smtp", name, credentials: relay }, here(own))
  for (let at = 0; at < 20; at++) expect((await named(`relay ${at}`)).status).toBe(201)
  const { status, body } = await named("one too many")
  expect([status, body.error.code]).toEqual([409, "conflict"])
  expect(body.error.details).toEqual({ reason: "too_many", limit: 20 })
  expect((await named("relay 7")).status).toBe(200)
})

test("a list holds those of the project, newest first, and can be narrowed to a kind", async () => {
  const own = await team(service)
  for (const name of ["a", "b"]) await make({ name, credentials: relay }, own)
  const names = async (query: string) => {
    const { body } = await own.owner.get(`/v1/providers${query}`, here(own))
    return body.data.map(({ name }: { name: string }) => name)
  }
  expect(await names("")).toEqual(["b", "a"])
  expect(await names("?kind=email_provider&per_page=1&page=2")).toEqual(["a"])
  expect(await names("?kind=sms_provider")).toEqual([])
  expect((await own.owner.get("/v1/providers?kind=x", here(own))).status).toBe(422)
})

test("a change keeps what is not named; credentials are given as a whole", async () => {
  const { id } = await make({
    name: "changing",
    credentials: relay,
    settings: { max_per_second: 5 },
  })
  const change = async (body: object) =>
    (await home.owner.patch(`${ALL}/${id}`, body, here(home))).body
  expect((await change({ priority: 3, enabled: false })).data).toMatchObject({
    priority: 3,
    enabled: false,
    settings: { max_per_second: 5 },
    credentials: { ...relay, password: "****9431" },
  })
  const broken = await change({ settings: { spf: ["ip4:10.0.0.0/33"] } })
  expect(broken.error.details.fields[0].path).toBe("settings.spf.0")
  // The password that is known must never travel to a host that somebody put in its place.
  const moved = await change({ credentials: { ...relay, port: 26, password: undefined } })
  expect(moved.error.code).toBe("missing_required_field")
  await make({ name: "taken", credentials: relay })
  expect((await change({ name: "taken" })).error).toMatchObject({ code: "conflict" })
})

test("a change of one setting keeps the others, and null forgets one", async () => {
  const settings = { max_per_second: 5, spf: ["include:spf.example.test"] }
  const { id } = await make({ name: "settings", credentials: relay, settings })
  const change = async (body: object) =>
    (await home.owner.patch(`${ALL}/${id}`, body, here(home))).body
  const kept = async (body: object) => (await change({ settings: body })).data.settings
  expect(await kept({ max_per_second: 7 })).toEqual({ ...settings, max_per_second: 7 })
  const spf = ["ip4:192.0.2.1"]
  expect(await kept({ spf })).toEqual({ max_per_second: 7, spf })
  expect(await kept({})).toEqual({ max_per_second: 7, spf })
  expect((await change({ credentials: relay })).data.settings).toEqual({ max_per_second: 7, spf })
  expect(await kept({ max_per_second: null })).toEqual({ spf })
  expect(await kept({ spf: null })).toEqual({})
  expect((await change({ settings: { max_per_second: 0 } })).error.code).toBe("validation_error")
})

test("deleting answers so, and then there is none", async () => {
  const { id } = await make({ name: "going", credentials: relay })
  const path = `${ALL}/${id}`
  expect((await home.owner.call("DELETE", path, { headers: here(home) })).body.data).toEqual({
    id,
    deleted: true,
  })
  expect((await home.owner.get(path, here(home))).status).toBe(404)
})

test("one of another project is as absent as one that nobody has", async () => {
  const { id } = await make({ name: "foreign", credentials: relay })
  const other = await team(service)
  for (const [method, path, body] of [
    ["GET", "", undefined],
    ["PATCH", "", { priority: 1 }],
    ["DELETE", "", undefined],
    ["POST", "/test", {}],
  ] as const) {
    const ask = { headers: here(other), ...(body && { body }) }
    const foreign = await other.owner.call(method, `${ALL}/${id}${path}`, ask)
    const absent = await other.owner.call(method, `${ALL}/${NOBODY}${path}`, ask)
    expect(foreign.status).toBe(404)
    expect(foreign.body.error).toEqual(absent.body.error)
  }
})

test("the audit log tells of every change, and holds no secret", async () => {
  const own = await team(service)
  const { id } = await make({ name: "audited", credentials: relay }, own)
  await own.owner.patch(`${ALL}/${id}`, { credentials: relay }, here(own))
  await own.owner.call("DELETE", `${ALL}/${id}`, { headers: here(own) })
  const { body } = await own.owner.get("/v1/audit-log?target_type=provider_config", here(own))
  const actions = body.data.map(({ action }: { action: string }) => action)
  expect(actions).toContain("provider.created")
  expect(actions).toContain("provider.updated")
  expect(actions).toContain("provider.deleted")
  expect(JSON.stringify(body)).not.toContain(SECRET)
  expect(JSON.stringify(body)).not.toContain("v1.")
})

describe("a test of a provider", () => {
  const tested = async (credentials: object, body: object = {}) => {
    const own = await team(service)
    const { id } = await make({ credentials }, own)
    const settings = { default_from: "bell@example.test" }
    await own.owner.patch("/v1/settings", settings, here(own))
    const answer = await own.owner.post(`${ALL}/${id}/test`, body, here(own))
    const { body: after } = await own.owner.get(`${ALL}/${id}`, here(own))
    return { ...answer, after: after.data }
  }

  test("logs in, and tells how long it took", async () => {
    using sink = smtpSink({ EHLO: "250-sink.test\r\n250 AUTH PLAIN" })
    const { status, body } = await tested({ ...relay, port: sink.port })
    expect(status).toBe(200)
    expect(body.data).toMatchObject({ ok: true, duration_ms: expect.any(Number) })
    expect(body.data.detail).toContain("it accepted the login")
    expect(sink.received).toEqual([])
  })

  test("says where TLS is offered and not used, and gives no password to who asks for none", async () => {
    const asked = "250-sink.test\r\n250-STARTTLS\r\n250 AUTH PLAIN"
    using open = smtpSink({ EHLO: asked })
    const { body } = await tested({ ...relay, port: open.port })
    expect(body.data.detail).toContain("It offers STARTTLS. Set tls to starttls.")

    using strict = smtpSink({ EHLO: "250-sink.test\r\n250-PIPELINING\r\n250 STARTTLS" })
    const refused = await tested({ ...relay, port: strict.port })
    expect(refused.status).toBe(502)
    expect(refused.body.error.details.fault).toBe("authentication")
    expect(refused.body.error.message).toContain("Set tls to starttls")
    expect(strict.lines.some((line) => line.startsWith("AUTH"))).toBe(false)
  })

  test("with an address sends a mail", async () => {
    using sink = smtpSink()
    const { body } = await tested({ ...relay, port: sink.port }, { to: "ann@example.test" })
    expect(body.data.ok).toBe(true)
    expect(sink.received[0]).toContain("Subject: A test of smtp (smtp)")
  })

  test("with an address, in a project without a sender, names the command that sets one", async () => {
    const own = await team(service)
    const { id } = await make({ credentials: relay }, own)
    const path = `${ALL}/${id}/test`
    const { body } = await own.owner.post(path, { to: "ann@example.test" }, here(own))
    expect(body.error.code).toBe("sender_not_configured")
    expect(body.error.message).toContain("`belfry settings set default_from=<address>`")
  })

  test("with refused credentials is 502, and the provider is paused", async () => {
    using sink = smtpSink({ EHLO: "250-x\r\n250 AUTH PLAIN", AUTH: "535 5.7.8 wrong" })
    const { status, body, after } = await tested({ ...relay, port: sink.port })
    expect([status, body.error.code]).toEqual([502, "provider_error"])
    expect(body.error.details).toEqual({ provider: "smtp", fault: "authentication" })
    expect(after).toMatchObject({ status: "error", last_error: "AUTH: 535 5.7.8 wrong" })
  })

  test("that nobody answers is 502", async () => {
    const sink = smtpSink()
    sink[Symbol.dispose]()
    const { status, body } = await tested({ ...relay, port: sink.port })
    expect([status, body.error.details.fault]).toEqual([502, "connection"])
  })

  test("says so where there is no room for it at the moment", async () => {
    const openDirect = (): EmailProvider => ({
      ...nobody,
      send: () => Promise.reject(new DeferredError("example.test is paused: 421 too many", 30)),
    })
    await using crowded = await testService({ providers: { openDirect } })
    const own = await team(crowded)
    const { body: made } = await own.owner.post(ALL, { provider: "direct" }, here(own))
    await own.owner.patch("/v1/settings", { default_from: "bell@example.test" }, here(own))
    const path = `${ALL}/${made.data.id}/test`
    const { status, body } = await own.owner.post(path, { to: "ann@example.test" }, here(own))
    expect([status, body.error.code]).toEqual([502, "provider_error"])
    expect(body.error.message).toBe("example.test is paused: 421 too many")
  })

  test("is written down where it pauses the provider, and where it resumes it", async () => {
    let is_right = false
    using sink = smtpSink({
      EHLO: "250-x\r\n250 AUTH PLAIN",
      AUTH: () => (is_right ? undefined : "535 5.7.8 wrong"),
    })
    const own = await team(service)
    const { id } = await make({ credentials: { ...relay, port: sink.port } }, own)
    await own.owner.post(`${ALL}/${id}/test`, {}, here(own))
    is_right = true
    await own.owner.post(`${ALL}/${id}/test`, {}, here(own))
    const { body } = await own.owner.get("/v1/audit-log?target_type=provider_config", here(own))
    const lines = body.data.map((one: { action: string; actor: { type: string } }) => [
      one.action,
      one.actor.type,
    ])
    expect(lines.slice(0, 2)).toEqual([
      ["provider.resumed", "system"],
      ["provider.paused", "system"],
    ])
  })

  test("refuses what is no address, and a sender that is not verified", async () => {
    using sink = smtpSink()
    const odd = await tested({ ...relay, port: sink.port }, { to: "nobody" })
    expect(odd.body.error.code).toBe("invalid_email")
  })
})

test("a secret is neither in the database nor in the log", async () => {
  const { id } = await make({ name: "sealed", credentials: relay })
  await home.owner.post(`${ALL}/${id}/test`, {}, here(home))
  expect(await atRest(service)).not.toContain(SECRET)
  expect(recentLines().join("\n")).not.toContain(SECRET)
})
